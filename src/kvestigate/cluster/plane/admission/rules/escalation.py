"""Nobody hands out permissions that they do not have, in a role or by binding one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.access.authz.rules import ALL, Rule, atoms, covered
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import MASTERS, User
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import BadRequest, Forbidden, NotFound

_EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), non_resource_urls=(ALL,)))
_ROLES = ("roles", "clusterroles")
_ROLE_KINDS = {"Role": "roles", "ClusterRole": "clusterroles"}


def forbid_escalation(write: Write) -> None:
    if write.operation == "DELETE" or MASTERS in write.scene.user.groups:
        return
    if write.old is not None and _granted(write.new) == _granted(write.old):
        return  # as when the garbage collector works on its owners
    if write.kind.resource.plural in _ROLES:
        _check_role(write)
    else:
        _check_binding(write)


def authorize_grant(
    present: PlaneState, later: PlaneState, user: User, plural: str, item: Item
) -> None:
    """Forbidden, unless the user could write a role or binding that `later` has at `present`."""
    if MASTERS in user.groups:
        return
    if plural in _ROLES:
        verb, role_plural, name = "escalate", plural, item.name
        kind = "Role" if plural == "roles" else "ClusterRole"
    else:
        reference = objects.read(item)["roleRef"]
        kind, name = reference["kind"], reference["name"]
        verb, role_plural = "bind", _ROLE_KINDS[kind]
    namespace = item.namespace
    info = RequestInfo("POST", "", verb, rbac.GROUP, "v1", role_plural, namespace, name)
    if rbac.allowed(present, user, info):
        return
    rules = rbac.index(later).role(kind, namespace, name)
    owned = list(rbac.index(present).rules(user, namespace))
    if missing := [atom for atom in atoms(rules) if not covered(atom, owned)]:
        qualified = f'{plural}.{rbac.GROUP} "{item.name}"'
        raise Forbidden(f"{qualified} is forbidden: {_attempt(user, missing)}")


def _granted(obj: Object) -> Object:
    meta = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
    }
    return {**obj, "metadata": meta}


def _check_role(write: Write) -> None:
    plural = write.kind.resource.plural
    if _may(write, "escalate", plural, write.info.name):
        return
    new, old = write.new, write.old or {}
    aggregation = new.get("aggregationRule")
    if aggregation != old.get("aggregationRule") and _missing(write, _EVERYTHING):
        raise write.forbidden("must have cluster-admin privileges to use the aggregationRule")
    rules = msgspec.convert(new.get("rules") or (), tuple[Rule, ...])
    if missing := _missing(write, rules):
        raise write.forbidden(_attempt(write.scene.user, missing))


def _check_binding(write: Write) -> None:
    reference = write.new["roleRef"]
    kind, name = reference.get("kind", ""), reference.get("name", "")
    plural = _ROLE_KINDS.get(kind)
    if plural is None or _may(write, "bind", plural, name):
        return
    if not name:
        raise BadRequest("Name parameter required.")
    state, namespace = write.scene.state, write.info.namespace
    where = namespace if plural == "roles" else ""
    if state.get((rbac.GROUP, plural), where, name) is None:
        resource = write.kind.resource
        raise NotFound(
            f'{resource.qualified} "{name}" not found',
            details={"name": name, "group": resource.group, "kind": resource.plural},
        )
    rules = rbac.index(state).role(kind, namespace, name)
    if missing := _missing(write, rules):
        raise write.forbidden(_attempt(write.scene.user, missing))


def _may(write: Write, verb: str, plural: str, name: str) -> bool:
    info = RequestInfo("POST", "", verb, rbac.GROUP, "v1", plural, write.info.namespace, name)
    return rbac.allowed(write.scene.state, write.scene.user, info)


def _missing(write: Write, rules: Iterable[Rule]) -> list[Rule]:
    """The permissions in these rules that the user does not have."""
    scene = write.scene
    owned = list(rbac.index(scene.state).rules(scene.user, write.info.namespace))
    return [atom for atom in atoms(rules) if not covered(atom, owned)]


def _attempt(user: User, missing: Sequence[Rule]) -> str:
    who = f'user "{user.name}" (groups=[{_listed(user.groups)}])'
    lines = "\n".join(sorted(map(_shown, _compacted(missing))))
    return f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"


def _compacted(missing: Iterable[Rule]) -> Iterable[Rule]:
    """One rule for all verbs on the same thing; those about URLs stay apart."""
    verbs: dict[Rule, dict[str, None]] = {}
    for atom in missing:
        if atom.non_resource_urls:
            yield atom
        else:
            thing = msgspec.structs.replace(atom, verbs=())
            verbs.setdefault(thing, {})[atom.verbs[0]] = None
    for thing, allowed in verbs.items():
        yield msgspec.structs.replace(thing, verbs=tuple(allowed))


def _shown(rule: Rule) -> str:
    fields = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("ResourceNames", rule.resource_names),
        ("NonResourceURLs", rule.non_resource_urls),
        ("Verbs", rule.verbs),
    )
    return f"{{{', '.join(f'{name}:[{_listed(values)}]' for name, values in fields if values)}}}"


def _listed(values: Iterable[str]) -> str:
    return " ".join(f'"{value}"' for value in values)
