"""Secrets: bytes under file names, and the keys that a type promises."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable

import msgspec

from kvestigate.cluster.plane.kinds.config_maps import SIZE_LIMIT, sealed
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause, Causes

OPAQUE = "Opaque"
TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_BASIC_AUTH, _SSH_AUTH = "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth"
_TLS = "kubernetes.io/tls"


class SecretKind(Kind):
    shares_on_update = True
    selectable = (("type", lambda obj: obj.get("type", "")),)

    def default(self, obj: Object) -> None:
        obj.setdefault("type", OPAQUE)
        plain = obj.pop("stringData", None)
        if plain:
            encoded = {key: b64encode(text.encode()).decode() for key, text in plain.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def validate(self, obj: Object, scene: Scene) -> Causes:
        data = obj.get("data") or {}
        problems: list[Cause] = []
        if data and not names.are_config_keys(data):
            problems += [
                causes.invalid(f"data[{key}]", key, text)
                for key in data
                for text in names.config_key_problems(key)
            ]
        if sum(len(b64decode(value)) for value in data.values()) > SIZE_LIMIT:
            problems.append(causes.too_long("data", SIZE_LIMIT))
        return problems + self._promised(obj, data)

    def _promised(self, obj: Object, data: dict[str, str]) -> list[Cause]:
        """The keys that a secret of its type must have."""
        type_ = obj["type"]
        if type_ == TOKEN:
            annotations = obj["metadata"].get("annotations") or {}
            path = f"metadata.annotations[{ACCOUNT_NAME}]"
            return [] if annotations.get(ACCOUNT_NAME) else [causes.required(path)]
        if type_ in _DOCKER:
            return _docker_config(data, _DOCKER[type_])
        if type_ == _BASIC_AUTH:
            either = ("username", "password")
            return [] if any(key in data for key in either) else _required(either)
        if type_ == _SSH_AUTH:
            return [] if data.get("ssh-privatekey") else _required(["ssh-privatekey"])
        if type_ == _TLS:
            return _required(key for key in ("tls.crt", "tls.key") if key not in data)
        return []

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        yield from self.validate_update(new, old, scene)
        yield from self.validate(new, scene)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        problems = []
        if new["type"] != old.get("type", ""):
            problems.append(causes.invalid("type", new["type"], "field is immutable"))
        return problems + sealed(new, old, "data")

    def warnings(self, obj: Object) -> list[str]:
        if obj["type"] != _TLS:
            return []
        data = obj.get("data") or {}
        for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN" not in b64decode(data.get(key, "")):
                return [f"tls: failed to find any PEM data in {what} input"]
        return []


def _required(keys: Iterable[str]) -> list[Cause]:
    return [causes.required(f"data[{key}]") for key in keys]


def _docker_config(data: dict[str, str], key: str) -> list[Cause]:
    path = f"data[{key}]"
    if key not in data:
        return [causes.required(path)]
    try:
        msgspec.json.decode(b64decode(data[key]), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:  # which quotes nothing
        return [causes.invalid(path, "<secret contents redacted>", str(error))]
    return []
