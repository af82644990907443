"""What a container runs when only its image would know. Pure.

Images are not pulled, so an entrypoint can only be known by name. Those without one, and those
that just wait, are; for all others the spec has to say what to run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

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
_WAITING = ("pause", "dcgm-exporter", "vllm-openai")

UNKNOWN = "ImageEntrypointUnknown"
PULL_BACK_OFF = "ImagePullBackOff"

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::[\w][\w.-]{{0,127}})?(?:@{_DIGEST})?",
    re.ASCII,
)
_LONGEST_NAME = 255


class EntrypointUnknown(Exception):
    """Only the image knows what to run, and it is not here."""


class InvalidImageName(Exception):
    """No registry can have an image of this name."""


class ImageMissing(Exception):
    """A registry would not have it."""


def check_name(image: str) -> None:
    """Raise InvalidImageName, in the words of the kubelet, for what is no image reference."""
    if problem := _name_problem(image):
        parsing = f'couldn\'t parse image name "{image}": {problem}'
        raise InvalidImageName(f'Failed to apply default image tag "{image}": {parsing}')


def _name_problem(image: str) -> str:
    first, slash, rest = image.partition("/")
    is_host = first == "localhost" or first != first.lower() or bool({".", ":"} & set(first))
    is_domain = bool(slash) and is_host
    name = (rest if is_domain else image).partition("@")[0]
    path = name.partition(":")[0]
    if re.fullmatch(r"[a-f0-9]{64}", image):
        rule = f"({image}), cannot specify 64-byte hexadecimal strings"
        return f"invalid repository name {rule}"
    if path != path.lower():
        shown = path if is_domain or "/" in path else f"library/{path}"
        return f"invalid reference format: repository name ({shown}) must be lowercase"
    if len(image) > _LONGEST_NAME and len(path) > _LONGEST_NAME:
        return f"repository name must not be more than {_LONGEST_NAME} characters"
    return "" if _REFERENCE.fullmatch(image) else "invalid reference format"


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


def served_model(image: str, command: Sequence[str], args: Sequence[str]) -> str:
    """The model that a container of vLLM loads; empty if a container is none."""
    if command or short_name(image) != "vllm-openai":
        return ""
    for word, following in pairwise((*args, "")):
        if word == "--model" and following:
            return following
        if word.startswith("--model="):
            return word.removeprefix("--model=")
    return "facebook/opt-125m"  # vLLM's own default


def short_name(image: str) -> str:
    """`pause` of `registry.k8s.io/pause:3.10`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]
