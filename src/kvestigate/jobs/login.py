"""Who is logged in here: one name in a file of the user's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kvestigate.errors import InputError, UsageError
from kvestigate.jobs.identity import User


def login_file(environ: Mapping[str, str]) -> Path:
    config = environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "kvestigate" / "user"


def log_in(environ: Mapping[str, str], name: str) -> User:
    user, path = User(name), login_file(environ)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{user.name}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the file: {error.strerror}", where=str(path)) from error
    return user


def logged_in(environ: Mapping[str, str]) -> User:
    path = login_file(environ)
    try:
        name = path.read_text(encoding="utf-8").removesuffix("\n")
    except FileNotFoundError:
        raise UsageError("nobody is logged in", hint="k8s-cli auth login NAME") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    return User(name)
