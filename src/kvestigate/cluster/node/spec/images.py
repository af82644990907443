"""What a container runs when only its image would know. Pure.

Images are not pulled, so an entrypoint can only be known by name. Those without one, and those
that just wait, are; for all others the spec has to say what to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

_FOREVER = ("sleep", "2147483647")

# Images whose command is replaced by `args` as a whole, and what they run without any.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "alpine": ("/bin/sh",),
    "amazonlinux": ("/bin/bash",),
    "busybox": ("sh",),
    "debian": ("bash",),
    "fedora": ("/bin/bash",),
    "golang": ("bash",),
    "perl": ("perl",),
    "python": ("python3",),
    "rockylinux": ("/bin/bash",),
    "ubuntu": ("/bin/bash",),
}

# Images that just wait: the node does what they are there for.
_WAITING = ("pause", "dcgm-exporter")

UNKNOWN = "ImageEntrypointUnknown"
PULL_BACK_OFF = "ImagePullBackOff"


class EntrypointUnknown(Exception):
    """Only the image knows what to run, and it is not here."""


class ImageMissing(Exception):
    """A registry would not have it."""


def check_exists(image: str, missing: Sequence[str]) -> None:
    """Raise ImageMissing for an image that matches one of the patterns of missing images."""
    if any(fnmatchcase(image, pattern) for pattern in missing):
        raise ImageMissing(f"failed to resolve reference {image}: {image}: not found")


def argv(image: str, command: Sequence[str], args: Sequence[str]) -> tuple[str, ...]:
    """What to run for `image`, given the spec's `command` and `args`."""
    if command:
        return (*command, *args)
    name = short_name(image)
    if name in _WAITING:
        return _FOREVER
    if name in _COMMANDS:
        return tuple(args) or _COMMANDS[name]
    raise EntrypointUnknown(
        f'image "{image}" is not pulled on this node and its entrypoint is unknown: '
        "set command in the container's spec"
    )


def is_gpu_exporter(image: str, command: Sequence[str]) -> bool:
    """Whether a container is NVIDIA's DCGM exporter, run as its image has it."""
    return not command and short_name(image) == "dcgm-exporter"


def short_name(image: str) -> str:
    """`pause` of `registry.k8s.io/pause:3.10`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]
