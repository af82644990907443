"""Writing renewed tokens back into the kubeconfig they came from, all or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kvestigate.client.located import parse
from kvestigate.client.locking import locked
from kvestigate.errors import ConfigError
from kvestigate.files import replace_file
from kvestigate.render.encode import to_yaml


def save_auth_provider(file: Path, user: str, config: Mapping[str, str]) -> None:
    """Replace the `auth-provider` configuration of `user` in `file`, read anew.

    The file is replaced in one step and keeps its permissions; a link keeps pointing to it.
    Another program's lock, or a user entry that has gone, leaves the file alone.
    """
    target = file.resolve()
    try:
        with locked(target):
            content = _with_provider(file, target.read_bytes(), user, config)
            if content is not None:
                replace_file(target, content)
    except FileExistsError:
        lock = f"{target}.lock"
        raise _unsaved(file, f"{lock} is there: another program is writing") from None
    except OSError as error:
        raise _unsaved(file, error.strerror) from None


def _unsaved(file: Path, reason: str | None) -> ConfigError:
    return ConfigError(
        f"{file}: the renewed login could not be saved: {reason}",
        hint="make the file and its directory writable, then log in again",
    )


def _with_provider(file: Path, data: bytes, user: str, config: Mapping[str, str]) -> bytes | None:
    document = parse(str(file), data).value
    users = document.get("users") if isinstance(document, dict) else None
    for entry in users or ():
        provider = (entry.get("user") or {}).get("auth-provider")
        if entry.get("name") == user and provider:
            provider["config"] = dict(config)
            return to_yaml(document).encode()
    return None
