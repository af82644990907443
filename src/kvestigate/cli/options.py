"""The global options: one list, accepted before and after every command.

Each occurrence is written into one collection that the contexts of a call share, so the
last one wins wherever it stands. `collected` freezes it into `GlobalOptions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvestigate.cli.parameters import duration

if TYPE_CHECKING:
    from kvestigate.client.access import AccessOptions

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("table", "wide", "json", "yaml")


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """What the user said about the cluster and the output; empty means not given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    as_uid: str = ""
    request_timeout: float | None = None
    """Seconds a single request may take; None leaves the client's own limits."""
    verbose: bool = False
    no_color: bool = False
    output: str = "table"
    """One of `FORMATS`, or of what a command has beside them."""

    @property
    def wide(self) -> bool:
        return self.output == "wide"

    @property
    def cluster_flags(self) -> tuple[str, ...]:
        """What was said about which cluster and as whom, for commands that we propose."""
        given = (
            ("--kubeconfig", self.kubeconfig),
            ("--context", self.context),
            ("--as", self.as_user),
            *(("--as-group", group) for group in self.as_groups),
            ("--as-uid", self.as_uid),
        )
        return tuple(word for flag, value in given if value for word in (flag, value))

    @property
    def cluster_words(self) -> str:
        """The same, as a shell takes it."""
        import shlex

        return shlex.join(self.cluster_flags)

    def access(self) -> AccessOptions:
        """The part that decides which cluster, and as whom."""
        from kvestigate.client.access import AccessOptions

        return AccessOptions(
            kubeconfig=self.kubeconfig,
            context=self.context,
            namespace=self.namespace,
            as_user=self.as_user,
            as_groups=self.as_groups,
            as_uid=self.as_uid,
            request_timeout=self.request_timeout,
        )


def collected(values: dict[str, Any]) -> GlobalOptions:
    """The options given so far."""
    return GlobalOptions(**values)


def global_parameters() -> list[click.Option]:
    """Fresh parameters for one command."""
    return [_option(*names, **attributes) for names, attributes in _GLOBAL]


_GLOBAL: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--kubeconfig",),
        {"metavar": "PATH", "help": "Kubeconfig file to use instead of the default ones."},
    ),
    (("--context",), {"metavar": "NAME", "help": "Context of the kubeconfig to use."}),
    (("-n", "--namespace"), {"metavar": "NAME", "help": "Namespace to work in."}),
    (("--as", "as_user"), {"metavar": "USER", "help": "User to impersonate."}),
    (
        ("--as-group", "as_groups"),
        {"metavar": "GROUP", "multiple": True, "help": "Group to impersonate; repeatable."},
    ),
    (("--as-uid",), {"metavar": "UID", "help": "UID to impersonate."}),
    (
        ("--request-timeout",),
        {
            "type": duration,
            "help": "Longest a single request may take (30s, 1m30s; 0 for any time).",
        },
    ),
    (
        ("-o", "--output"),
        {"type": click.Choice(FORMATS), "help": "Output format; table when not given."},
    ),
    (("--no-color",), {"is_flag": True, "help": "No colour, also on a terminal."}),
    (("-v", "--verbose"), {"is_flag": True, "help": "Show the traceback of a defect."}),
)


def output_option(*more: str) -> Callable[[F], F]:
    """Add `-o` to a command that has formats of its own beside the usual ones."""
    decorate: Callable[[F], F] = click.option(
        "-o",
        "--output",
        type=click.Choice((*FORMATS, *more)),
        expose_value=False,
        callback=_collect,
        help="Output format; table when not given.",
    )
    return decorate


def format_option(function: F) -> F:
    """Add `-o` to a command whose `--output` is a file."""
    decorate: Callable[[F], F] = click.option(
        "-o",
        "output",
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=_collect,
        help="Output format; table when not given.",
    )
    return decorate(function)


def _option(*names: str, **attributes: Any) -> click.Option:
    return click.Option(list(names), expose_value=False, callback=_collect, **attributes)


def _collect(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    values = context.ensure_object(dict)
    name = parameter.name
    if name is None or value is None or value is False or value == ():
        return
    if isinstance(value, tuple):
        value = (*values.get(name, ()), *value)
    values[name] = value


GLOBAL_NAMES = frozenset(option.name for option in global_parameters())
