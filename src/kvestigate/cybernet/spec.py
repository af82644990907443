"""A Cyberspace: who may ask for which operations, on which hosts, and how much of them. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kvestigate.errors import InputError
from kvestigate.kube import durations, quantities
from kvestigate.kube.documents import known_fields, listed, mapping, text
from kvestigate.kube.names import label_problems
from kvestigate.kube.patterns import InvalidPattern, compiled
from kvestigate.operation import Isolation, RunRules
from kvestigate.workspace.limits import Limits

API_VERSION = "kvestigate.cybernet/v1"
KIND = "Cyberspace"
STORAGE_MODES = ("disk", "hybrid", "all-tmpfs")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@-]{0,61}[A-Za-z0-9])?")
_HIGHEST_PORT = 65535
_SHORTEST_LEASE = 300.0
_SHORTEST_ANSWER = 2048
_SECTIONS = (
    "apiVersion",
    "kind",
    "metadata",
    "listen",
    "auth",
    "operations",
    "constraints",
    "quotas",
    "runs",
    "leases",
    "answers",
    "audit",
)


@dataclass(frozen=True, slots=True)
class Metadata:
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class HttpListen:
    host: str
    port: int
    tls: TlsFiles | None = None
    """None: plain HTTP."""

    @property
    def readable_by_others(self) -> bool:
        """Whether tokens and files cross a network as they are."""
        if self.tls is not None or self.host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True


@dataclass(frozen=True, slots=True)
class ListenSpec:
    http: HttpListen | None = None
    """None: the HTTP front is not to be served."""
    mcp_stdio: bool = False
    mcp_http: bool = True
    """Whether the HTTP front also speaks MCP, at `/mcp`."""


@dataclass(frozen=True, slots=True)
class TokenSpec:
    identity: str
    sha256: str
    """Of the bearer token, in lower-case hexadecimal digits."""
    tags: tuple[str, ...] = ()
    expires: float | None = None
    """Seconds since the epoch from which it is refused; None: never."""


@dataclass(frozen=True, slots=True)
class HostRequirements:
    """What a node must have left for a new workspace."""

    min_free_gpu: int = 0
    min_free_cpu_cores: float = 0.0
    min_free_memory: int = 0
    """Bytes."""

    def __bool__(self) -> bool:
        return bool(self.min_free_gpu or self.min_free_cpu_cores or self.min_free_memory)


@dataclass(frozen=True, slots=True)
class HostConstraintsSpec:
    allow_names: tuple[str, ...] | None = None
    """None: every node; empty: not one."""
    require: HostRequirements = field(default_factory=HostRequirements)


@dataclass(frozen=True, slots=True)
class WorkspaceConstraintsSpec:
    name_pattern: str = ""
    """A regular expression that the whole name has to match; empty: any name."""
    allowed_modes: tuple[str, ...] = STORAGE_MODES
    max_tmpfs_size: int | None = None
    """Bytes of one workspace."""
    max_gpu: int | None = None
    """GPUs of one workspace."""
    cordon_node_forbidden: bool = True


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """None: no limit."""

    max_active_workspaces_per_identity: int | None = None
    max_total_active_workspaces: int | None = None
    max_total_active_gpu: int | None = None
    max_total_active_memory: int | None = None
    """Bytes of tmpfs."""

    @property
    def limits_anything(self) -> bool:
        return self != QuotaSpec()


@dataclass(frozen=True, slots=True)
class LeaseSpec:
    ttl: float | None = None
    """Seconds after which a workspace is removed that its agent has not asked about, and in which
    nothing runs; None: never."""


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """How long answers are that a model reads."""

    budget: int = 8 * 1024
    """Bytes, unless a request asks for more."""
    max_budget: int = 8 * 1024 * 1024
    """Bytes that a request may ask for."""


@dataclass(frozen=True, slots=True)
class AuditSpec:
    path: str
    include_denials: bool = True


@dataclass(frozen=True, slots=True)
class Cyberspace:
    metadata: Metadata
    listen: ListenSpec
    tokens: tuple[TokenSpec, ...]
    allow: tuple[str, ...]
    """Names of operations; whatever is not here is denied."""
    hosts: HostConstraintsSpec
    workspace: WorkspaceConstraintsSpec
    quotas: QuotaSpec
    runs: RunRules
    leases: LeaseSpec
    audit: AuditSpec
    answers: AnswerSpec = field(default_factory=AnswerSpec)


def read_cyberspace(document: Any) -> Cyberspace:
    """The cyberspace that a document means; every mistake is named with its path."""
    top = _fields(document, "", _SECTIONS)
    _exactly(top.get("apiVersion"), API_VERSION, "apiVersion")
    _exactly(top.get("kind"), KIND, "kind")
    constraints = _fields(top.get("constraints"), "constraints", ("hosts", "workspace"))
    operations = _fields(top.get("operations"), "operations", ("allow",))
    return Cyberspace(
        metadata=_metadata(top.get("metadata")),
        listen=_listen(top.get("listen")),
        tokens=_tokens(top.get("auth")),
        allow=_unique(_texts(operations.get("allow"), "operations.allow"), "operations.allow"),
        hosts=_hosts(constraints.get("hosts")),
        workspace=_workspace(constraints.get("workspace")),
        quotas=_quotas(top.get("quotas")),
        runs=_runs(top.get("runs")),
        leases=_leases(top.get("leases")),
        audit=_audit(top.get("audit")),
        answers=_answers(top.get("answers")),
    )


def _metadata(value: Any) -> Metadata:
    fields = _fields(value, "metadata", ("name", "description"))
    name = text(fields.get("name"), "metadata.name")
    if problems := label_problems(name):
        raise InputError(
            f"metadata.name: {name!r}: {problems[0]}", hint="write a name such as research-agents"
        )
    description = fields.get("description")
    return Metadata(name, "" if description is None else text(description, "metadata.description"))


def _listen(value: Any) -> ListenSpec:
    fields = _fields(value, "listen", ("http", "mcp"))
    http = None
    if fields.get("http") is not None:
        found = _fields(fields["http"], "listen.http", ("address", "tls"))
        address = text(found.get("address"), "listen.http.address")
        http = listen_address(address, "listen.http.address")
        if found.get("tls") is not None:
            tls = _fields(found["tls"], "listen.http.tls", ("cert", "key"))
            files = (text(tls.get(it), f"listen.http.tls.{it}") for it in ("cert", "key"))
            http = replace(http, tls=TlsFiles(*files))
    mcp = _fields(fields.get("mcp"), "listen.mcp", ("stdio", "http"))
    return ListenSpec(
        http,
        mcp_stdio=_boolean(mcp.get("stdio", False), "listen.mcp.stdio"),
        mcp_http=_boolean(mcp.get("http", True), "listen.mcp.http"),
    )


def listen_address(value: str, path: str) -> HttpListen:
    """`127.0.0.1:8765` or `[::1]:8765`"""
    host, colon, port = value.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host.startswith("[") and host.endswith("]")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else -1
    if not (colon and bare) or (":" in bare and not bracketed) or not 0 <= number <= _HIGHEST_PORT:
        raise InputError(f"{path}: {value!r} is no address", hint="write 127.0.0.1:8765")
    return HttpListen(bare, number)


def _tokens(value: Any) -> tuple[TokenSpec, ...]:
    found: list[TokenSpec] = []
    entries = listed(_fields(value, "auth", ("tokens",)).get("tokens"), "auth.tokens")
    for index, entry in enumerate(entries):
        path = f"auth.tokens[{index}]"
        fields = _fields(entry, path, ("identity", "sha256", "tags", "expires"))
        identity = text(fields.get("identity"), f"{path}.identity")
        if not _IDENTITY.fullmatch(identity):
            raise InputError(
                f"{path}.identity: {identity!r} is not a name of letters, digits and . _ @ -",
                hint="write a name such as research-agent-1",
            )
        digest = text(fields.get("sha256"), f"{path}.sha256")
        if not _DIGEST.fullmatch(digest.lower()):
            # What is here by mistake may be the token itself: it is not repeated.
            raise InputError(
                f"{path}.sha256: is not the SHA-256 of a token: 64 hexadecimal digits",
                hint="`kvestigate cybernet hash-token` makes it from a token",
            )
        if any(digest.lower() == it.sha256 for it in found):
            raise InputError(
                f"{path}.sha256: is given twice", hint="give each identity a token of its own"
            )
        tags = _texts(fields.get("tags"), f"{path}.tags")
        expires = _instant(fields.get("expires"), f"{path}.expires")
        found.append(TokenSpec(identity, digest.lower(), tags, expires))
    return tuple(found)


def _instant(value: Any, path: str) -> float | None:
    if value is None:
        return None
    try:
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise InputError(
            f"{path}: {str(value)!r} is no instant with a time zone",
            hint='write "2027-01-31T12:00:00Z"',
        )
    return instant.timestamp()


def _hosts(value: Any) -> HostConstraintsSpec:
    path = "constraints.hosts"
    fields = _fields(value, path, ("allow_names", "require"))
    names = fields.get("allow_names")
    required = _fields(
        fields.get("require"),
        f"{path}.require",
        ("min_free_gpu", "min_free_cpu_cores", "min_free_memory"),
    )
    cores = required.get("min_free_cpu_cores", 0)
    if isinstance(cores, bool) or not isinstance(cores, int | float) or cores < 0:
        raise InputError(
            f"{path}.require.min_free_cpu_cores: {cores!r} is not a number of cores",
            hint="write 80",
        )
    return HostConstraintsSpec(
        None if names is None else _texts(names, f"{path}.allow_names"),
        HostRequirements(
            _count(required.get("min_free_gpu", 0), f"{path}.require.min_free_gpu"),
            float(cores),
            _bytes(required.get("min_free_memory", 0), f"{path}.require.min_free_memory"),
        ),
    )


def _workspace(value: Any) -> WorkspaceConstraintsSpec:
    path = "constraints.workspace"
    fields = _fields(value, path, ("name_pattern", "storage", "gpu"))
    storage = _fields(fields.get("storage"), f"{path}.storage", ("allowed_modes", "max_tmpfs_size"))
    gpu = _fields(fields.get("gpu"), f"{path}.gpu", ("max_per_workspace", "cordon_node_forbidden"))
    return WorkspaceConstraintsSpec(
        name_pattern=_pattern(fields.get("name_pattern"), f"{path}.name_pattern"),
        allowed_modes=_modes(storage.get("allowed_modes"), f"{path}.storage.allowed_modes"),
        max_tmpfs_size=_optional(storage, "max_tmpfs_size", f"{path}.storage", _bytes),
        max_gpu=_optional(gpu, "max_per_workspace", f"{path}.gpu", _count),
        cordon_node_forbidden=_boolean(
            gpu.get("cordon_node_forbidden", True), f"{path}.gpu.cordon_node_forbidden"
        ),
    )


def _pattern(value: Any, path: str) -> str:
    if value is None:
        return ""
    pattern = text(value, path)
    try:
        compiled(f"^(?:{pattern})$")
    except InvalidPattern as error:
        raise InputError(
            f"{path}: {pattern!r} is not a regular expression: {error}",
            hint="write one such as ^agent-[a-z0-9-]{1,30}$",
        ) from None
    return pattern


def _modes(value: Any, path: str) -> tuple[str, ...]:
    if value is None:
        return STORAGE_MODES
    modes = _texts(value, path)
    for index, mode in enumerate(modes):
        if mode not in STORAGE_MODES:
            raise InputError(
                f"{path}[{index}]: {mode!r} is not a storage mode",
                hint=f"there are: {', '.join(STORAGE_MODES)}",
            )
    return modes


def _quotas(value: Any) -> QuotaSpec:
    names = (
        "max_active_workspaces_per_identity",
        "max_total_active_workspaces",
        "max_total_active_gpu",
        "max_total_active_memory",
    )
    fields = _fields(value, "quotas", names)
    counts = {name: _optional(fields, name, "quotas", _count) for name in names[:-1]}
    memory = _optional(fields, "max_total_active_memory", "quotas", _bytes)
    return QuotaSpec(**counts, max_total_active_memory=memory)


def _runs(value: Any) -> RunRules:
    names = ("isolation", "cpu", "memory", "processes", "infiniband")
    fields = _fields(value, "runs", names)
    known = tuple(it.value for it in Isolation)
    isolation = text(fields.get("isolation", Isolation.REQUIRED), "runs.isolation")
    if isolation not in known:
        raise InputError(
            f"runs.isolation: {isolation!r} is not known", hint=f"there are: {', '.join(known)}"
        )
    amounts = {
        name: text(fields[name], f"runs.{name}") if name in fields else ""
        for name in ("cpu", "memory")
    }
    try:
        Limits(**amounts)
    except InputError as error:
        raise InputError(
            error.message.replace("limits.", "runs.", 1), hint='write cpu: "8", memory: 64Gi'
        ) from None
    processes = _count(fields.get("processes", RunRules().processes), "runs.processes")
    infiniband = _boolean(fields.get("infiniband", False), "runs.infiniband")
    return RunRules(Isolation(isolation), **amounts, processes=processes, infiniband=infiniband)


def _leases(value: Any) -> LeaseSpec:
    fields = _fields(value, "leases", ("ttl",))
    if fields.get("ttl") is None:
        return LeaseSpec()
    written = text(fields["ttl"], "leases.ttl")
    try:
        seconds = durations.parse(written)
    except ValueError as error:
        raise InputError(f"leases.ttl: {error}", hint="write 24h") from None
    if seconds < _SHORTEST_LEASE:
        raise InputError(f"leases.ttl: {written!r} is less than 5m", hint="write 24h")
    return LeaseSpec(seconds)


def _answers(value: Any) -> AnswerSpec:
    fields = _fields(value, "answers", ("budget", "max_budget"))
    usual = AnswerSpec()
    found = AnswerSpec(
        _bytes(fields.get("budget", usual.budget), "answers.budget"),
        _bytes(fields.get("max_budget", usual.max_budget), "answers.max_budget"),
    )
    if not _SHORTEST_ANSWER <= found.budget <= found.max_budget:
        raise InputError(
            f"answers.budget: {found.budget} is not between {_SHORTEST_ANSWER} and max_budget",
            hint="write 8Ki",
        )
    return found


def _audit(value: Any) -> AuditSpec:
    fields = _fields(value, "audit", ("path", "include_denials"))
    if "path" not in fields:
        raise InputError(
            "audit.path: the field is required",
            hint="name the file in which every request is recorded",
        )
    return AuditSpec(
        text(fields["path"], "audit.path"),
        _boolean(fields.get("include_denials", True), "audit.include_denials"),
    )


def _fields(value: Any, path: str, known: Collection[str]) -> Mapping[str, Any]:
    found = mapping(value, path or "the cyberspace")
    known_fields(found, known, f"{path}." if path else "")
    return found


def _exactly(value: Any, wanted: str, path: str) -> None:
    if value != wanted:
        said = "is missing" if value is None else f"{value!r} is not known"
        raise InputError(f"{path}: {said}", hint=f"write {path}: {wanted}")


def _texts(value: Any, path: str) -> tuple[str, ...]:
    return tuple(text(each, f"{path}[{index}]") for index, each in enumerate(listed(value, path)))


def _unique(values: tuple[str, ...], path: str) -> tuple[str, ...]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise InputError(f"{path}[{index}]: {value!r} is given twice", hint="remove one")
    return values


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{path}: {value!r} is neither true nor false")
    return value


def _count(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{path}: {value!r} is not a whole number (0 or more)", hint="write 4")
    return value


def _bytes(value: Any, path: str) -> int:
    try:
        amount = quantities.whole(value)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", hint="write 500Gi") from None
    if amount < 0:
        raise InputError(f"{path}: {value!r} is negative", hint="write 500Gi")
    return amount


def _optional(fields: Mapping[str, Any], name: str, path: str, read: Any) -> int | None:
    value = fields.get(name)
    found: int | None = None if value is None else read(value, f"{path}.{name}")
    return found
