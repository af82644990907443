"""Failures as sentences: what our own errors and click's look like to the user."""

from __future__ import annotations

import re

import click

from kvestigate.errors import (
    ConnectionFailed,
    Forbidden,
    KvestigateError,
    TooManyRequests,
    Unauthorized,
    nearest,
)

# The server's own words say what is wrong, but not what to type next.
_WAYS_OUT: dict[type[KvestigateError], str] = {
    Unauthorized: "log in again; `kvestigate debug context` shows what is sent as credentials",
    Forbidden: "`kvestigate debug context` shows who the server thinks you are",
    TooManyRequests: "wait a little, or ask for less at a time",
}


_PROPOSED = re.compile(r"(?<=`)(?:kvestigate|kubectl)(?= )|(?<=\| )kubectl(?= )")
"""The programs of commands in a hint: they stand in backquotes, perhaps behind a pipe."""


def way_out(error: KvestigateError, cluster: str = "") -> str | None:
    """The hint to show with an expected failure: its own, or the one for its kind.

    Its commands get the flags that said which `cluster` is meant: to paste one must not change
    another cluster.
    """
    hint = _way_out(error)
    if not hint or not cluster:
        return hint
    return _PROPOSED.sub(lambda program: f"{program[0]} {cluster}", hint)


def _way_out(error: KvestigateError) -> str | None:
    if isinstance(error, ConnectionFailed) and (stopped := _stopped_cluster(error.message)):
        return f'the cluster "{stopped}" is stopped: kvestigate up --name {stopped}'
    return error.hint or _WAYS_OUT.get(type(error))


def _stopped_cluster(message: str) -> str | None:
    """The cluster of this machine that would be where nobody answers."""
    import os

    from kvestigate.cluster.assembly.directory import clusters_directory, known

    try:
        for cluster in known(clusters_directory(os.environ)):
            address = cluster.read().url.removeprefix("https://")
            if address and message.startswith(f"{address} ") and not cluster.is_running():
                return cluster.name
    except (KvestigateError, OSError):  # what cannot be looked at is no help
        return None
    return None


def expected(error: BaseException) -> KvestigateError | None:
    """The expected failure that `error` is, or that a group of tasks failed with."""
    if isinstance(error, KvestigateError):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = [expected(member) for member in error.exceptions]
        # One defect among them is what the user must see, not the failures it caused.
        return found[0] if all(found) else None
    return None


def describe_usage(error: click.ClickException, program: str) -> tuple[str, str]:
    """The message and the way out of a mistake that click found on the command line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else program
    help_ = f"`{path} --help` shows what it takes"
    if isinstance(error, click.NoSuchOption):
        message = f"no such option {error.option_name!r}"
        near = _near_option(error.option_name, context)
        if near:
            return message, f"did you mean `{near}`? {help_}"
        if context is not None and _takes_a_command(context.command):
            return (
                message,
                f"if it belongs to the command that is run, write -- before that; {help_}",
            )
        return message, help_
    return _as_sentence(error.format_message()), help_


def _near_option(name: str, context: click.Context | None) -> str | None:
    """The option that was probably meant; the dashes, which all have, do not make it similar."""
    if context is None or not name.startswith("--"):
        return None
    parameters = context.command.get_params(context)  # those that derive from an operation, too
    known = (option for parameter in parameters for option in parameter.opts)
    words = {option[2:]: option for option in known if option.startswith("--")}
    return words.get(nearest(name[2:], words))


def _takes_a_command(owner: click.Command) -> bool:
    """Whether what comes after `--` is a command line with options of its own."""
    return any((parameter.metavar or "").startswith("-- ") for parameter in owner.params)


def _as_sentence(message: str) -> str:
    """Click's message in the house style: one line, lower case, no full stop."""
    line = " ".join(message.split()).removesuffix(".")
    return line[:1].lower() + line[1:]
