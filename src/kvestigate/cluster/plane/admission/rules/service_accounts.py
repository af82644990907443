"""Every pod runs as a service account that exists, and can reach its token."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from kvestigate.cluster.plane.access.authz import references
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.kinds.podspec.annotations import MIRROR
from kvestigate.cluster.plane.kinds.podspec.defaults import name_account
from kvestigate.cluster.plane.kinds.podspec.volumes import token_source
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import names

ACCOUNTS = ("", "serviceaccounts")
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
# An hour and seven seconds: the odd number tells the default from a wish for an hour.
_TOKEN_VOLUME = "kube-api-access-"
"""Starts the name of the volume that every pod is given for its token."""


def give_account(write: Write) -> None:
    if not write.creates:
        return
    pod = write.new
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        _check_mirror(write, pod["spec"])
        return
    name_account(pod["spec"], pod["spec"].get("serviceAccountName") or "default")
    account = _account(write)
    if _automounts(pod["spec"], account):
        _mount_token(pod)
    if not pod["spec"].get("imagePullSecrets") and account.pull_secrets:
        pod["spec"]["imagePullSecrets"] = [dict(each) for each in account.pull_secrets]


def _check_mirror(write: Write, spec: Object) -> None:
    """What a kubelet runs of its own accord gets nothing from the cluster."""
    if spec.get("serviceAccountName"):
        raise write.forbidden("a mirror pod may not reference service accounts")
    if any(references.secrets(spec)):
        raise write.forbidden("a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                why = "a mirror pod may not use ServiceAccountToken volume projections"
                raise write.forbidden(why)


class _Account(msgspec.Struct, frozen=True):
    """What an account says about the pods that use it."""

    automounts: bool | None = msgspec.field(name="automountServiceAccountToken", default=None)
    pull_secrets: list[Object] | None = msgspec.field(name="imagePullSecrets", default=None)


# The pods of a namespace run as the same few.
_decode_account = lru_cache(maxsize=1024)(msgspec.json.Decoder(_Account).decode)


def _account(write: Write) -> _Account:
    pod, namespace = write.new, write.info.namespace
    name = pod["spec"]["serviceAccountName"]
    item = write.scene.state.get(ACCOUNTS, namespace, name)
    if item is None:
        why = f"error looking up service account {namespace}/{name}"
        raise write.forbidden(f'{why}: serviceaccount "{name}" not found')
    return _decode_account(item.data)


def _automounts(spec: Object, account: _Account) -> bool:
    wish = spec.get("automountServiceAccountToken")
    if wish is None:
        wish = account.automounts
    return wish is None or bool(wish)


def _mount_token(pod: Object) -> None:
    spec = pod["spec"]
    volumes: list[Object] = spec.get("volumes") or []
    named = (volume["name"] for volume in volumes if volume["name"].startswith(_TOKEN_VOLUME))
    present = next(named, "")
    # Drawn from the uid, so that what follows from a pod is the same wherever it is computed.
    name = present or _TOKEN_VOLUME + names.suffix(int(pod["metadata"]["uid"][-12:], 16))
    needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
            container["volumeMounts"] = [*mounts, mount]
            needed = True
    if needed and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_source()}]
