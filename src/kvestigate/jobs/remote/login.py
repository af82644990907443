"""The login on this machine: a name and, for servers that need one, a token, in two files."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path

from kvestigate.errors import InputError, UsageError
from kvestigate.files import replace_file
from kvestigate.jobs.users import User

API_URL = "K8S_CLI_API_URL"
TOKEN = "K8S_CLI_TOKEN"
_WAY_IN = "k8s-cli auth login NAME"
_HINT = "point XDG_CONFIG_HOME at a directory that you may write to"


def login_file(environ: Mapping[str, str]) -> Path:
    return _directory(environ) / "user"


def token_file(environ: Mapping[str, str]) -> Path:
    return _directory(environ) / "token"


def log_in(environ: Mapping[str, str], name: str, token: str = "") -> User:
    """Store the login; a stored token is removed if none is given."""
    user = User(name)
    if any(character.isspace() or not character.isprintable() for character in token):
        raise InputError("the token contains spaces or characters that cannot be printed")
    _write(login_file(environ), f"{user.name}\n")
    if token:
        _write(token_file(environ), f"{token}\n")
    else:
        _remove(token_file(environ))
    return user


def log_out(environ: Mapping[str, str]) -> None:
    for path in (login_file(environ), token_file(environ)):
        _remove(path)


def logged_in(environ: Mapping[str, str]) -> User:
    name = _read(login_file(environ))
    if not name:
        raise UsageError("no user is logged in", hint=_WAY_IN)
    return User(name)


def owner(environ: Mapping[str, str]) -> User:
    """The owner of tasks without a server: the logged-in user, else the user of this machine."""
    if name := _read(login_file(environ)):
        return User(name)
    try:
        return User(getpass.getuser())
    except (KeyError, OSError):  # a uid that has no name
        raise UsageError("no user is logged in", hint=_WAY_IN) from None


def stored_token(environ: Mapping[str, str]) -> str:
    """The token in K8S_CLI_TOKEN, else the stored one; empty without either."""
    return environ.get(TOKEN) or _read(token_file(environ))


def _directory(environ: Mapping[str, str]) -> Path:
    config = environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "kvestigate"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), hint=_HINT
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", where=str(path), hint=_HINT) from error


def _write(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content.encode(), mode=0o600)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", where=str(path), hint=_HINT
        ) from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be removed: {error.strerror}", where=str(path)) from error
