"""The commands of `k8s-collect`: those of `kvestigate collect`, under that program's name."""

from __future__ import annotations

import copy

from kvestigate.cli import collect
from kvestigate.cli.group import Command


def _renamed(original: Command) -> Command:
    twin = copy.copy(original)
    twin.examples = tuple(
        example.replace("kvestigate collect ", "k8s-collect ") for example in original.examples
    )
    return twin


watch = _renamed(collect.watch)
from_file = _renamed(collect.from_file)
