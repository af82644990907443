"""Memory settings that a server of many requests and large answers is better off with."""

from __future__ import annotations

import ctypes
import gc
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_BYTES = 256 * 1024 * 1024
_PAD_BYTES = 16 * 1024 * 1024
_NEW_OBJECTS, _LOOKS, _LONGER_LOOKS = 5_000, 2, 80
"""Containers made and not yet freed before the collector looks at them: about as many as the
requests under way have together. Were it half as many, a write would take 4% more instructions.
After so many looks there is one at what they left, which takes two milliseconds at most, and
after so many of those one at everything."""


def collect_seldom() -> None:
    """Have the cyclic collector pass over what is there for good and come less often.

    A request makes hundreds of dicts and lists that are no cycles: by default the collector
    would look at them several times before the request is over. What a server has made when it
    begins to serve it keeps, so then is the time to call this once more.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _LOOKS, _LONGER_LOOKS)


def keep_large_blocks() -> bool:
    """Have freed memory of large answers kept for the next one; whether that was possible.

    By default glibc maps every block over 128 KB anew and returns it at once, so that each
    LIST of a megabyte pays for hundreds of page faults.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    wanted = ((_MMAP_THRESHOLD, _BYTES), (_TRIM_THRESHOLD, _BYTES), (_TOP_PAD, _PAD_BYTES))
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted)
