"""Failures as sentences: what our own errors and click's look like to the user."""

from __future__ import annotations

import click

from kvestigate.errors import KvestigateError


def expected(error: BaseException) -> KvestigateError | None:
    """The expected failure that `error` is, or that a group of tasks failed with."""
    if isinstance(error, KvestigateError):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = [expected(member) for member in error.exceptions]
        # One defect among them is what the user must see, not the failures it caused.
        return found[0] if all(found) else None
    return None


def describe_usage(error: click.ClickException) -> tuple[str, str | None]:
    """The message and the way out of a mistake that click found on the command line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    way_out = f"`{context.command_path} --help` shows what it takes" if context else None
    if isinstance(error, click.NoSuchOption):
        message = f"no such option {error.option_name!r}"
        near = sorted(error.possibilities or ())[:1]
        if near and way_out:
            return message, f"did you mean `{near[0]}`? {way_out}"
        return message, way_out
    return _as_sentence(error.format_message()), way_out


def _as_sentence(message: str) -> str:
    """Click's message in the house style: one line, lower case, no full stop."""
    line = " ".join(message.split()).removesuffix(".")
    return line[:1].lower() + line[1:]
