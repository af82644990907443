"""How large a tmpfs is, as `mount` reads it: `500G` and `500Gi` are both 500 * 2**30. Pure."""

from __future__ import annotations

import re

from kvestigate.errors import InputError

_SIZE = re.compile(r"([1-9][0-9]{0,17})([kKMGTP]?)i?", re.ASCII)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}


def parse_size(text: str, where: str = "workspace.storage.tmpfs_size") -> int:
    """Bytes."""
    found = _SIZE.fullmatch(text)
    if found is None or (text.endswith("i") and not found[2]):
        raise InputError(
            f"{text!r} is not a size",
            where=where,
            hint="write a whole number and K, M, G or T: 500G",
        )
    return int(found[1]) << _POWERS[found[2].upper()]


def mount_size(count: int) -> str:
    """The option of `mount`, in the largest unit that is exact."""
    for suffix, power in reversed(_POWERS.items()):
        if count % (1 << power) == 0:
            return f"{count >> power}{suffix}"
    return str(count)
