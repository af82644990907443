"""The three programs, and the one place where errors become exit codes.

Commands return nothing, an exit code, or a coroutine that gives one of these; only this
module runs a loop, prints failures, and decides what the shell is told.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Coroutine, Sequence
from typing import Any, NoReturn, cast

import click

from kvestigate import __version__
from kvestigate.cli.commands import K8S_CLI, K8S_COLLECT, KVESTIGATE, Entry
from kvestigate.cli.failures import describe_usage, expected, way_out
from kvestigate.cli.group import LazyGroup
from kvestigate.cli.options import GlobalOptions, collected
from kvestigate.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE

_NEW_OBJECTS = 100_000
EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 usage, 3 no cluster, 4 denied, 5 not found, "
    "6 conflict, 7 timeout, 130 interrupted."
)


def program(name: str, help: str, entries: Sequence[Entry], *, derives: bool = False) -> LazyGroup:
    """The root command of one console script."""
    root = LazyGroup(
        name,
        help=help,
        epilog=EXIT_CODES,
        entries=entries,
        derives=derives,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    version = click.version_option(__version__, prog_name=name, message="%(prog)s %(version)s")
    return version(root)


KVESTIGATE_PROGRAM = program(
    "kvestigate",
    "Investigate Kubernetes clusters, run work on them, and carry one with you.",
    KVESTIGATE,
    derives=True,
)
K8S_CLI_PROGRAM = program("k8s-cli", "Launch jobs on Kubernetes.", K8S_CLI)
K8S_COLLECT_PROGRAM = program(
    "k8s-collect", "Stream what workloads do, one event a line.", K8S_COLLECT
)


def kvestigate() -> NoReturn:
    sys.exit(_main(KVESTIGATE_PROGRAM))


def k8s_cli() -> NoReturn:
    sys.exit(_main(K8S_CLI_PROGRAM))


def k8s_collect() -> NoReturn:
    sys.exit(_main(K8S_COLLECT_PROGRAM))


def _main(root: click.Command) -> int:
    # Modules and classes are garbage to nobody: looking for some while they are imported takes a
    # tenth of the time of a short command. Servers choose their own threshold.
    gc.set_threshold(_NEW_OBJECTS)
    for stream in (sys.stdout, sys.stderr):
        # Logs and labels hold any character; a terminal that lacks some shows their numbers.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return run(root)


def run(root: click.Command, args: Sequence[str] | None = None) -> int:
    """Run one command line to its exit code; `args` are those of the process if not given."""
    given: dict[str, Any] = {}
    try:
        code = _call(root, args, given)
        # What is still buffered must fail here, where a closed pipe is understood.
        sys.stdout.flush()
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return EXIT_OK
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        _complain(*describe_usage(error, root.name or ""))
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001  # the top level: everything ends here as a sentence
        return _fail(error, collected(given))


def _call(root: click.Command, args: Sequence[str] | None, given: dict[str, Any]) -> int:
    outcome = root.main(
        args if args is None else list(args),
        prog_name=root.name,
        standalone_mode=False,
        obj=given,
    )
    if hasattr(outcome, "__await__"):
        import asyncio

        outcome = asyncio.run(cast("Coroutine[Any, Any, int | None]", outcome))
    return outcome if isinstance(outcome, int) else EXIT_OK


def _fail(error: Exception, options: GlobalOptions) -> int:
    failure = expected(error)
    if failure is not None:
        _complain(failure.message, way_out(failure, options.cluster_words))
        return failure.exit_code
    if options.verbose:
        import traceback

        traceback.print_exception(error)
    _complain(
        f"unexpected {type(error).__name__}: {error}",
        "this is a defect of kvestigate, sorry; "
        + ("please report the lines above" if options.verbose else "-v shows where it happened"),
    )
    return EXIT_FAILED


def _complain(message: str, hint: str | None) -> None:
    # Messages quote servers and files, which may hold escape sequences.
    from kvestigate.render.blocks import printable

    click.echo(f"error: {printable(message)}", err=True)
    if hint:
        click.echo(f"hint: {printable(hint)}", err=True)


def _forget_stdout() -> None:
    """Nobody reads any more: what is still buffered must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
