"""The cluster's context in the user's own kubeconfig: merged in, taken out, never clobbered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvestigate.client.located import parse
from kvestigate.errors import ConfigError
from kvestigate.files import replace_file
from kvestigate.render.encode import to_yaml

_SECTIONS = ("clusters", "users", "contexts")


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
    source = _load(admin)
    config = _load(path) if path.exists() else _empty()
    entries = {
        "clusters": {"name": name, "cluster": source["clusters"][0]["cluster"]},
        "users": {"name": name, "user": source["users"][0]["user"]},
        "contexts": {"name": name, "context": {"cluster": name, "user": name}},
    }
    for section, entry in entries.items():
        config[section] = [*_others(config, section, name), entry]
    config["current-context"] = config.get("current-context") or name
    _write(path, config)
    return name


def remove(path: Path, cluster: str) -> bool:
    """Take the cluster's entries out; False if there were none."""
    name = context_name(cluster)
    if not path.exists():
        return False
    config = _load(path)
    before = {section: len(config.get(section) or ()) for section in _SECTIONS}
    for section in _SECTIONS:
        if section in config:
            config[section] = _others(config, section, name)
    if all(len(config.get(section) or ()) == before[section] for section in _SECTIONS):
        return False
    if config.get("current-context") == name:
        config["current-context"] = ""
    _write(path, config)
    return True


def _others(config: dict[str, Any], section: str, name: str) -> list[Any]:
    return [entry for entry in config.get(section) or () if entry.get("name") != name]


def _load(path: Path) -> dict[str, Any]:
    try:
        value = parse(str(path), path.read_bytes()).value
    except (OSError, ConfigError) as error:
        why = error.message if isinstance(error, ConfigError) else f"{path}: {error.strerror}"
        raise ConfigError(
            f"cannot add the cluster's context: {why}",
            hint="repair the file, or point KUBECONFIG at another one",
        ) from error
    return value if isinstance(value, dict) else _empty()


def _empty() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Config"}


def _write(path: Path, config: dict[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, to_yaml(config).encode())
