"""ResourceQuotas: a namespace does not take more than it may.

What is used is read from and written to the quota's status, as kube-apiserver does it: the
quota controller counts anew when something goes, admission adds what comes. The new usage is
committed together with the object, so that no two writers can both take the last of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.rules.amounts import Amounts
from kvestigate.cluster.plane.admission.rules.usage import in_scope, unspecified, usage
from kvestigate.cluster.plane.kinds.registry import builtin
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import Item
from kvestigate.kube.quantities import ZERO, parse

QUOTAS = ("", "resourcequotas")
_PODS = ("", "pods")
_REPRICED = (("", "services"), ("", "persistentvolumeclaims"))
"""Kinds whose objects can come to cost more when they change."""


def charge_quotas(write: Write) -> None:
    if not _charged(write):
        return
    known = write.scene.state.collection(QUOTAS)
    quotas = list(known.items(write.info.namespace)) if known else []
    if not quotas:
        return
    costs = usage(write.kind.resource, write.new)
    concerned = [(item, quota) for item in quotas if _concerns(quota := objects.read(item), write)]
    for _, quota in concerned:
        _check_complete(write, quota, costs)
    costs = _difference(write, costs)
    for item, quota in concerned:
        _charge(write, item, quota, costs)


def _charged(write: Write) -> bool:
    if not write.info.namespace or write.kind.key == QUOTAS or write.operation == "DELETE":
        return False
    if write.operation == "CREATE":
        return not write.info.subresource
    if write.kind.key == _PODS:
        return write.info.subresource == "resize"
    return write.kind.key in _REPRICED and not write.info.subresource


def _concerns(quota: Object, write: Write) -> bool:
    return in_scope(write.kind.resource, write.new, quota["spec"])


def _hard(quota: Object) -> dict[str, str]:
    hard: dict[str, str] = (quota.get("status") or {}).get("hard") or {}
    return hard


def _used(quota: Object) -> dict[str, str]:
    used: dict[str, str] = (quota.get("status") or {}).get("used") or {}
    return used


def _check_complete(write: Write, quota: Object, costs: Amounts) -> None:
    """Refuse pods without the requests that a quota counts, and quotas without a status yet."""
    name, hard = quota["metadata"]["name"], _hard(quota)
    if write.kind.key == _PODS and (missing := unspecified(write.new["spec"], hard)):
        names = "; ".join(f"{what} for: {','.join(who)}" for what, who in missing.items())
        raise write.forbidden(f"failed quota: {name}: must specify {names}")
    unknown = sorted(what for what in costs if what in hard and what not in _used(quota))
    if unknown:
        names = ",".join(unknown)
        raise write.forbidden(f"status unknown for quota: {name}, resources: {names}")


def _difference(write: Write, costs: Amounts) -> Amounts:
    before = {} if write.old is None else usage(write.kind.resource, write.old)
    more = {name: amount - before.get(name, ZERO) for name, amount in costs.items()}
    return {name: amount for name, amount in more.items() if amount > ZERO}


def _charge(write: Write, item: Item, quota: Object, costs: Amounts) -> None:
    hard, used = _hard(quota), _used(quota)
    amounts = {name: amount for name, amount in costs.items() if name in hard}
    if not amounts:
        return
    after = {name: parse(used.get(name, "0")) + amount for name, amount in amounts.items()}
    exceeded = sorted(name for name, amount in after.items() if amount > parse(hard[name]))
    if exceeded:
        name = quota["metadata"]["name"]
        requested = _told(exceeded, {key: str(value) for key, value in amounts.items()})
        now = f"used: {_told(exceeded, used)}, limited: {_told(exceeded, hard)}"
        raise write.forbidden(f"exceeded quota: {name}, requested: {requested}, {now}")
    new_used = {**used, **{name: str(amount) for name, amount in after.items()}}
    quota["status"] = {**quota["status"], "used": dict(sorted(new_used.items()))}
    write.extra.append(objects.put(quota, builtin()["", "v1", "resourcequotas"], item.revision))


def _told(names: Iterable[str], amounts: Mapping[str, str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
