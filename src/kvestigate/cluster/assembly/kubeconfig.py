"""The cluster's context in the user's own kubeconfig: merged in, taken out, never clobbered."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kvestigate.client.locking import locked
from kvestigate.errors import ConfigError
from kvestigate.files import replace_file
from kvestigate.kube.documents import first_document
from kvestigate.render.encode import to_yaml

LOCK_SECONDS = 5.0
"""How long another program may hold the lock of the file before we give up."""
_POLL_SECONDS = 0.02
_SECTIONS = ("clusters", "users", "contexts")
_ADD = "cannot add the cluster's context"
_TAKE_OUT = "cannot remove the cluster's context"


def target(environ: Mapping[str, str]) -> Path:
    """The file that kubectl would write to: the first of KUBECONFIG, else the default."""
    for path in environ.get("KUBECONFIG", "").split(os.pathsep):
        if path:
            return Path(path)
    return Path.home() / ".kube" / "config"


def context_name(cluster: str) -> str:
    return f"kvestigate-{cluster}"


def merge(path: Path, admin: Path, cluster: str) -> str:
    """Add the admin kubeconfig's entries under the cluster's name; make it current if none is."""
    name = context_name(cluster)
    source = _load(admin, _ADD)
    entries = {
        "clusters": {"name": name, "cluster": source["clusters"][0]["cluster"]},
        "users": {"name": name, "user": source["users"][0]["user"]},
        "contexts": {"name": name, "context": {"cluster": name, "user": name}},
    }
    try:
        with _ours(path):
            config = _load(path, _ADD) if path.exists() else _empty()
            for section, entry in entries.items():
                config[section] = [*_others(config, section, name), entry]
            config["current-context"] = config.get("current-context") or name
            replace_file(path, to_yaml(config).encode())
    except OSError as error:
        raise ConfigError(
            f"{_ADD}: {path}: {error.strerror}",
            hint=f"the cluster is running: use --kubeconfig {admin}, "
            "or set KUBECONFIG to a writable file and run up again",
        ) from error
    return name


def remove(path: Path, cluster: str) -> bool:
    """Take the cluster's entries out; False if there were none."""
    name = context_name(cluster)
    if not _readable(path):
        return False
    try:
        with _ours(path):
            config = _load(path, _TAKE_OUT)
            if not _take_out(config, name):
                return False
            replace_file(path, to_yaml(config).encode())
    except OSError as error:
        raise ConfigError(
            f"{_TAKE_OUT}: {path}: {error.strerror}",
            hint="the cluster has stopped; make the file writable and run down again",
        ) from error
    return True


def _take_out(config: dict[str, Any], name: str) -> bool:
    """Whether there was anything to take."""
    removed = False
    for section in _SECTIONS:
        others = _others(config, section, name)
        if len(others) < len(config.get(section) or ()):
            config[section] = others
            removed = True
    if removed and config.get("current-context") == name:
        config["current-context"] = ""
    return removed


def _others(config: dict[str, Any], section: str, name: str) -> list[Any]:
    return [entry for entry in config.get(section) or () if entry.get("name") != name]


def _load(path: Path, failing: str) -> dict[str, Any]:
    """`failing` is what cannot be done if it cannot be read."""
    try:
        value = first_document(path.read_bytes(), str(path)).value
    except (OSError, ConfigError) as error:
        why = error.message if isinstance(error, ConfigError) else f"{path}: {error.strerror}"
        raise ConfigError(
            f"{failing}: {why}",
            hint="repair the file, or set KUBECONFIG to another one",
        ) from error
    return value if isinstance(value, dict) else _empty()


def _empty() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Config"}


def _readable(path: Path) -> bool:
    """Whether there may be something of ours in it."""
    try:
        return path.exists()
    except OSError:
        return False


@contextmanager
def _ours(path: Path) -> Iterator[None]:
    """Nobody else writes the file during the block: neither kubectl nor another `up`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + LOCK_SECONDS
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(locked(path.resolve()))
                break
            except FileExistsError:
                if time.monotonic() >= deadline:
                    raise ConfigError(
                        f"{path}.lock exists: another program is writing {path}",
                        hint="wait for that program; if none is running, delete the lock file",
                    ) from None
            # A file that is there tells nobody when it goes.
            time.sleep(_POLL_SECONDS)
        yield
