"""How the results of `cybernet` look. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, text
from kvestigate.render.human import size

if TYPE_CHECKING:
    from kvestigate.cybernet.serving import Accounts


@dataclass(frozen=True, slots=True)
class Initialised:
    """A new cyberspace; the token is shown here and nowhere else."""

    config: str
    identity: str
    token: str
    sha256: str
    next: tuple[str, ...]


def initialised_blocks(made: Initialised) -> Sequence[Block]:
    return [
        Facts(
            [
                ("config", made.config),
                ("identity", made.identity),
                ("token", Cell(made.token, Tone.STRONG)),
            ]
        ),
        text("The token is shown only now: the file holds no more than its SHA-256.", Tone.DIM),
        text("\n".join(("next:", *(f"  {it}" for it in made.next)))),
    ]


def info_blocks(info: Mapping[str, Any]) -> Sequence[Block]:
    """What `/info` says."""
    operations = info.get("operations") or ()
    hosts = (info.get("constraints") or {}).get("hosts") or {}
    allowed = hosts.get("allow_names")
    facts: list[tuple[str, str | Cell]] = [
        ("cyberspace", str(info.get("name", ""))),
        ("description", str(info.get("description", ""))),
        ("version", str(info.get("version", ""))),
        ("nodes", "all" if allowed is None else ", ".join(map(str, allowed)) or "none"),
        *_quotas(info.get("quotas") or {}, info.get("usage") or {}),
    ]
    columns = (Column("operation"), Column("effect"), Column("summary"))
    rows = [
        [str(it.get("name", "")), str(it.get("effect", "")), str(it.get("summary", ""))]
        for it in operations
    ]
    return [Facts(facts), Table(columns, rows, empty="no operation is allowed")]


def accounts_blocks(accounts: Accounts) -> Sequence[Block]:
    """Who holds what, and what had to be put right."""
    columns = (
        Column("node"),
        Column("workspace"),
        Column("identity"),
        Column("stage"),
        Column("gpus", number=True),
        Column("memory", number=True),
    )
    rows = [
        [
            entry.node,
            entry.name,
            entry.owner.partition("/")[2],
            entry.stage.value,
            str(entry.holding.gpus),
            size(entry.memory),
        ]
        for entry in accounts.holdings
    ]
    usage = {} if accounts.usage is None else asdict(accounts.usage)
    facts = [("cyberspace", accounts.cyberspace), *_quotas(asdict(accounts.quotas), usage)]
    found: list[Block] = [Facts(facts), Table(columns, rows, empty="nobody holds anything")]
    found += [text(f"repaired: {repair}", Tone.WARN) for repair in accounts.repairs]
    found += [text(f"not counted: {why}", Tone.WARN) for why in accounts.unknown]
    found += [
        text(f"node {node} cannot be asked ({why}): what is counted there is believed", Tone.WARN)
        for node, why in accounts.unreachable.items()
    ]
    return found


_COUNTED = (
    ("workspaces", "max_total_active_workspaces", "workspaces"),
    ("gpus", "max_total_active_gpu", "GPUs"),
    ("memory", "max_total_active_memory", "memory"),
)


def _quotas(quotas: Mapping[str, Any], usage: Mapping[str, Any]) -> list[tuple[str, str | Cell]]:
    found: list[tuple[str, str | Cell]] = []
    for used, limit, title in _COUNTED:
        most = quotas.get(limit)
        if most is not None:
            show = size if used == "memory" else str
            held = show(usage[used]) if used in usage else "?"
            found.append((title, f"{held} / {show(most)}"))
    return found
