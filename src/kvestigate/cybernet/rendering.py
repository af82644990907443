"""How the results of `cybernet` look. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kvestigate.kube import times
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, text
from kvestigate.render.human import size

if TYPE_CHECKING:
    from kvestigate.cybernet.serving import Accounts
    from kvestigate.cybernet.spec import TokenSpec


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


@dataclass(frozen=True, slots=True)
class Made:
    """A new token, which is shown here and nowhere else."""

    identity: str
    token: str
    sha256: str
    expires: float | None
    """Seconds since the epoch; null: never."""


def made_blocks(made: Made) -> Sequence[Block]:
    return [
        Facts(
            [
                ("identity", made.identity),
                ("token", Cell(made.token, Tone.STRONG)),
                ("expires", _until(made.expires)),
            ]
        ),
        text("The token is shown only now: the file holds no more than its SHA-256.", Tone.DIM),
    ]


@dataclass(frozen=True, slots=True)
class KnownToken:
    identity: str
    digest: str
    """The beginning of its SHA-256."""
    tags: tuple[str, ...]
    expires: float | None
    """Seconds since the epoch; null: never."""
    expired: bool


@dataclass(frozen=True, slots=True)
class KnownTokens:
    tokens: tuple[KnownToken, ...]


def known_tokens(tokens: Sequence[TokenSpec], now: float) -> KnownTokens:
    """What an operator may know of tokens: everything but the tokens."""
    return KnownTokens(
        tuple(
            KnownToken(
                token.identity,
                token.sha256[:12],
                token.tags,
                token.expires,
                token.expires is not None and now >= token.expires,
            )
            for token in tokens
        )
    )


def tokens_blocks(known: KnownTokens) -> Sequence[Block]:
    if not known.tokens:
        return [text("No tokens: nobody can call this cyberspace.")]
    columns = [Column("IDENTITY"), Column("DIGEST"), Column("EXPIRES"), Column("TAGS")]
    rows = [
        [
            token.identity,
            token.digest,
            Cell(f"{_until(token.expires)} (expired)", Tone.BAD)
            if token.expired
            else _until(token.expires),
            ", ".join(token.tags),
        ]
        for token in known.tokens
    ]
    return [Table(columns, rows)]


def _until(expires: float | None) -> str:
    return "never" if expires is None else times.text(expires)


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
