"""The same commands under another program's name: only their examples differ."""

from __future__ import annotations

import copy

from kvestigate.cli.command import Command
from kvestigate.cli.group import Group


def renamed_group(original: Group, old: str, new: str) -> Group:
    """A group whose examples say `new` instead of `old`."""
    twin = copy.copy(original)
    twin.commands = {
        name: renamed(member, old, new) if isinstance(member, Command) else member
        for name, member in original.commands.items()
    }
    return twin


def renamed(original: Command, old: str, new: str) -> Command:
    """A command whose examples say `new` instead of `old`."""
    twin = copy.copy(original)
    twin.examples = tuple(example.replace(old, new) for example in original.examples)
    return twin
