"""PURE but for reading the SDK. The Python file that an operator hands to an agent.

It stands alone: what it needs of the SDK is copied into it, so the agent needs nothing but
Python. What a server tells of itself is data here and never becomes code.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from kvestigate.errors import InputError
from kvestigate_client.shards import JOB_OPERATIONS

TOKEN_VARIABLE = "KVESTIGATE_CYBERNET_TOKEN"
_CALLS = ("gateway",)
_JOBS = (
    "gateway",
    "placement",
    "members",
    "extraction",
    "packing",
    "shards",
    "shard_files",
    "shard_runs",
    "distributed_job",
)
"""Modules of the SDK, each after those that it imports."""
_OPERATION = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*", re.ASCII)
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "object": "dict[str, Any]",
}


def agent_module(url: str, info: Mapping[str, Any], ca: str | None = None) -> str:
    """The source of a module with a function for each operation that `/info` shows.

    `ca` are the authorities that the agent is to trust, PEM.
    """
    operations = [(_operation_name(it), it) for it in info.get("operations") or ()]
    jobs = {name for name, _ in operations}.issuperset(JOB_OPERATIONS)
    imports, body = _sdk(_JOBS if jobs else _CALLS)
    imports |= {("os", ""), ("typing", "Any")}
    parts = [
        _docstring(info, jobs),
        "from __future__ import annotations",
        _import_block(imports),
        f"BASE_URL = {_quoted(url)}\nCA = {None if ca is None else _quoted(ca)}",
        *((_NEW_JOB,) if jobs else ()),
        *(_function(name, it) for name, it in operations),
        _CLIENT,
        "# What follows carries these out; nobody needs to read it to use them.",
        *body,
    ]
    return _spaced(parts)


_CLIENT = f'''\
def client() -> CybernetClient:
    """With the token in {TOKEN_VARIABLE}."""
    return CybernetClient(BASE_URL, os.environ.get("{TOKEN_VARIABLE}", ""), ca=CA)


def _call(operation: str, **parameters: Any) -> Any:
    given = {{key: value for key, value in parameters.items() if value is not None}}
    return client().call(operation, given)'''

_NEW_JOB = '''\
def new_job(prefix: str, shards: int) -> DistributedJob:
    """A job of as many shards, for use in a `with` block."""
    return DistributedJob(client(), prefix=prefix, shards=shards)'''


def _docstring(info: Mapping[str, Any], jobs: bool) -> str:
    name = _plain(info.get("name"))
    use = "from agent_helper import new_job" if jobs else "call the functions that follow"
    return (
        f'"""What the cyberspace {name} offers, as functions; written by kvestigate.\n\n'
        f"Put your token into {TOKEN_VARIABLE}, then {use}.\n"
        '"""'
    )


def _operation_name(offer: Any) -> str:
    name = offer.get("name") if isinstance(offer, Mapping) else None
    if not isinstance(name, str) or not _OPERATION.fullmatch(name):
        raise InputError(f"the server offers an operation called {name!r}, which cannot be")
    return name


def _function(name: str, offer: Mapping[str, Any]) -> str:
    schema = offer.get("parameters") or {}
    required = set(schema.get("required") or ())
    fields = [
        (field, inner, field in required)
        for field, inner in (schema.get("properties") or {}).items()
        if isinstance(field, str) and field.isidentifier() and not keyword.iskeyword(field)
    ]
    fields.sort(key=lambda it: not it[2])
    arguments = "".join(f"    {_argument(*it)},\n" for it in fields)
    header = f"(\n    *,\n{arguments})" if fields else "()"
    passed = "".join(f", {field}={field}" for field, _, _ in fields)
    called = f'    return _call("{name}"{passed})'
    if len(called) > 88:
        inner = "".join(f"        {field}={field},\n" for field, _, _ in fields)
        called = f'    return _call(\n        "{name}",\n{inner}    )'
    function = re.sub(r"[.-]", "_", name)
    said = _documented(offer, fields)
    return f"def {function}{header} -> dict[str, Any]:\n{said}\n{called}"


def _documented(offer: Mapping[str, Any], fields: Sequence[tuple[str, Any, bool]]) -> str:
    """The docstring: what the operation does, and what each parameter is."""
    summary = _plain(offer.get("summary"))
    if not fields:
        return f'    """{summary}"""'
    lines = [_wrapped(f"{field}: {_meaning(inner)}") for field, inner, _ in fields]
    return "\n".join((f'    """{summary}', "", "    Args:", *lines, '    """'))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 88, initial_indent=" " * 8, subsequent_indent=" " * 12)


def _meaning(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "it"
    inner = schema.get("anyOf")
    first = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], Mapping) else {}
    return _plain(schema.get("description") or first.get("description") or "see /info")


def _argument(name: str, schema: Any, required: bool) -> str:
    told = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(schema, Mapping) and "$ref" in schema:
        told = "object"
    kind = _TYPES.get(told, "Any") if isinstance(told, str) else "Any"
    if required:
        return f"{name}: {kind}"
    return f"{name}: {kind} = None" if kind == "Any" else f"{name}: {kind} | None = None"


def _plain(value: Any) -> str:
    """Words that can stand in a docstring without ending it."""
    words = re.sub(r"[^A-Za-z0-9 .,:;()/_=|-]", "", str(value or "")).strip()
    return words[:90].strip() or "it"


def _quoted(value: str) -> str:
    return '"' + re.sub(r'[\\"]|[^ -~]', lambda found: f"\\x{ord(found[0][0]):02x}", value) + '"'


def _sdk(modules: Sequence[str]) -> tuple[set[tuple[str, str]], list[str]]:
    """What the modules import from elsewhere, and their statements."""
    imports: set[tuple[str, str]] = set()
    body: list[str] = []
    for module in modules:
        source = resources.files("kvestigate_client").joinpath(f"{module}.py").read_text("utf-8")
        tree = ast.parse(source)
        last = 0
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports |= _imported(statement)
                last = statement.end_lineno or 0
        body.append("\n".join(source.splitlines()[last:]).strip())
    return imports, body


def _imported(statement: ast.Import | ast.ImportFrom) -> set[tuple[str, str]]:
    if isinstance(statement, ast.Import):
        return {(alias.name, "") for alias in statement.names}
    module = statement.module or ""
    if module == "__future__" or module.startswith("kvestigate_client"):
        return set()
    return {(module, alias.name) for alias in statement.names}


def _import_block(imports: Iterable[tuple[str, str]]) -> str:
    plain = sorted(module for module, name in imports if not name)
    named: dict[str, list[str]] = {}
    for module, name in imports:
        if name:
            named.setdefault(module, []).append(name)
    lines = [f"import {module}" for module in plain]
    for module in sorted(named):
        names = sorted(named[module], key=lambda it: (not it.isupper(), not it[0].isupper(), it))
        lines.append(f"from {module} import {', '.join(names)}")
    return "\n".join(lines)


def _spaced(parts: Sequence[str]) -> str:
    """One empty line between what is at the top, two around definitions."""
    text = parts[0]
    for before, part in itertools.pairwise(parts):
        wide = part.startswith(("def ", "class ")) or before.startswith(("def ", "class "))
        text += ("\n\n\n" if wide or _ends_in_block(before) else "\n\n") + part
    return text + "\n"


def _ends_in_block(part: str) -> bool:
    return part.splitlines()[-1].startswith((" ", "\t", "}", ")"))
