"""`kubeconfig convert`: the same access in another form. Shows first, writes when told.

What is written is there whole or not at all, and for its owner alone. A file that is replaced
is kept beside the new one; no other file is ever overwritten.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.auth.execplugin import ExecPlugin
from kvestigate.client.kubeconfig import parse_config
from kvestigate.client.locking import locked
from kvestigate.errors import ConfigError, InputError, UsageError
from kvestigate.files import replace_file
from kvestigate.kubeconfigs import files
from kvestigate.kubeconfigs.difference import Difference, difference
from kvestigate.kubeconfigs.strategies import (
    EXEC_TOKEN,
    INTO_DIRECTORY,
    NEEDS_OUT,
    STRATEGIES,
    Given,
    Made,
    Request,
    absolute_paths,
    with_token,
)
from kvestigate.operation import param
from kvestigate.render.encode import to_yaml


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    strategy: Annotated[
        Literal["inline", "extract", "minify", "rename", "merge", "split", "exec-token"],
        param("Which form.", argument=True, metavar="STRATEGY"),
    ]
    paths: Annotated[
        tuple[Path, ...], param("Kubeconfig files.", argument=True, metavar="[FILE]...")
    ] = ()
    out: Annotated[
        Path | None,
        param(
            "A new file, for extract and split a directory; else in place, where that is possible.",
            metavar="PATH",
        ),
    ] = None
    name: Annotated[
        str, param("Entry to rename; the current context if not given.", metavar="NAME")
    ] = ""
    new_name: Annotated[str, param("New name of the entry.", "--to", metavar="NAME")] = ""
    kind: Annotated[
        Literal["context", "cluster", "user"], param("Kind of the entry to rename.")
    ] = "context"
    apply: Annotated[bool, param("Write the files instead of only showing the changes.")] = False


@dataclass(frozen=True, slots=True)
class Output:
    path: str
    backup: str = ""
    """Where the file that was there is kept; empty for a new one."""


@dataclass(frozen=True, slots=True)
class Conversion:
    strategy: str
    applied: bool
    outputs: tuple[Output, ...]
    """Empty when nothing changes."""
    difference: Difference
    """To the file that is converted, or the first of those that are merged."""
    notes: tuple[str, ...] = ()


async def convert(
    access: AccessOptions, options: ConvertOptions, environ: Mapping[str, str], now: datetime
) -> Conversion:
    """UsageError if it cannot be done without overwriting something."""
    if options.strategy in NEEDS_OUT and options.out is None:
        what = "directory" if options.strategy in INTO_DIRECTORY else "file"
        raise UsageError(f"{options.strategy} creates a new {what}", hint="give --out PATH")
    if not options.paths:
        raise ConfigError("there is no kubeconfig file to convert", hint="name one")
    read = {path: files.read(path) for path in options.paths}
    given = tuple(Given(path, files.as_written(path, data)) for path, data in read.items())
    request = Request(given, access.context, options.name, options.new_name, options.kind)
    made = await _made(options.strategy, request, environ)
    before = given[0]
    config = made.configs.get("", made.configs.get("config"))
    changed = Difference(()) if config is None else difference(before.config, config)
    contents = _contents(options, before, made)
    if set(contents) == {before.path} and not changed:
        return Conversion(options.strategy, False, (), changed, made.notes)
    outputs = tuple(_output(path, given, now) for path in contents)
    if options.apply:
        for output, content in zip(outputs, contents.values(), strict=True):
            _write(output, content, read.get(Path(output.path), b""))
    return Conversion(options.strategy, options.apply, outputs, changed, made.notes)


async def _made(strategy: str, request: Request, environ: Mapping[str, str]) -> Made:
    if strategy != EXEC_TOKEN:
        return STRATEGIES[strategy](request)
    user, login, description = await _login_of(request.one.path, request.context, environ)
    made = with_token(request, user, login)
    return Made(made.configs, notes=(f"{description}; the credentials are not renewed",))


async def _login_of(
    path: Path, context: str, environ: Mapping[str, str]
) -> tuple[str, dict[str, str], str]:
    """Run the user's credential plugin.

    Returns the user's name, the login as kubeconfig fields, and the plugin's description.
    """
    access = resolve(AccessOptions(kubeconfig=str(path), context=context), environ, None)
    credentials = access.credentials
    if not isinstance(credentials, ExecPlugin):
        raise UsageError(
            f'context "{access.context}" does not log in with a credential plugin: '
            f"it has {credentials.describe()}",
            hint="choose another with --context; `kvestigate kubeconfig analyze` lists them",
        )
    credential = await credentials.current()
    login: dict[str, str] = {}
    if credential.token:
        login["token"] = credential.token
    if credential.certificate and credential.key:
        login["client-certificate-data"] = base64.b64encode(credential.certificate).decode()
        login["client-key-data"] = base64.b64encode(credential.key).decode()
    return access.user, login, credentials.describe()


def _contents(options: ConvertOptions, before: Given, made: Made) -> dict[Path, bytes]:
    """What goes where."""
    contents: dict[Path, bytes] = {}
    for name, config in made.configs.items():
        target = (options.out or before.path) if not name else _in(options.out, name)
        if not name and target.absolute().parent != before.path.absolute().parent:
            config = absolute_paths(before.path, config)
        text = to_yaml(config).encode()
        parse_config(str(target), text)
        contents[target] = text
    return contents | {_in(options.out, name): content for name, content in made.files.items()}


def _in(directory: Path | None, name: str) -> Path:
    assert directory is not None, "checked before anything is made"
    return directory / name


def _output(path: Path, given: tuple[Given, ...], now: datetime) -> Output:
    if not path.exists():
        return Output(str(path))
    if path not in {source.path for source in given}:
        raise UsageError(
            f"{path} already exists, and files are never overwritten",
            hint="give another --out, or move the file away",
        )
    backup = path.with_name(f"{path.name}.{now:%Y%m%dT%H%M%SZ}.bak")
    if backup.exists():
        raise UsageError(f"{backup} already exists", hint="try again in a second")
    return Output(str(path), str(backup))


def _write(output: Output, content: bytes, seen: bytes) -> None:
    """`seen` is what the content was made of, if it replaces that."""
    path = Path(output.path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(path.resolve()):
            if output.backup:
                if path.read_bytes() != seen:
                    raise ConfigError(
                        f"{path}: the file was changed in the meantime", hint="try again"
                    )
                replace_file(Path(output.backup), seen, mode=0o600)
            replace_file(path, content, mode=0o600)
    except FileExistsError:
        raise ConfigError(
            f"{path}.lock exists: another program is writing {path}",
            hint="wait for that program; if there is none, remove the lock file",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            hint="give an --out in a directory that you may write to",
        ) from error
