"""serviceaccounts/token: a TokenRequest answered with a signed token."""

from __future__ import annotations

from msgspec.structs import replace

from kvestigate.cluster.plane.access.authn.service_accounts import Bound
from kvestigate.cluster.plane.access.authz.reach import bound_to
from kvestigate.cluster.plane.admission.rules.service_accounts import TOKEN_SECONDS
from kvestigate.cluster.plane.model import metadata
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import forms
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import BadRequest, Conflict, NotFound
from kvestigate.http.message import Response
from kvestigate.kube import causes
from kvestigate.kube.resources import Resource

_GROUP = "authentication.k8s.io"
TOKEN_REQUEST = Kind(Resource(_GROUP, "v1", "tokenrequests", "TokenRequest"))
_UNANSWERED: Object = {"token": "", "expirationTimestamp": None}
_SHORTEST, _LONGEST, _USUAL = 600, 1 << 32, 3600
_BINDABLE = {"Pod": ("pods", "pod"), "Secret": ("secrets", "secret"), "Node": ("nodes", "node")}
_EXTENDED = 365 * 24 * 3600
"""Seconds that the tokens which every pod has are good for: there are programs that read theirs
only once."""
_ACCOUNT_OF_POD = 4
"""Where the name of the service account is among the fields of a pod."""


async def create_token(call: Call) -> Response:
    request = body.decode(replace(call, served=TOKEN_REQUEST))
    writing.check_namespace(call, request)
    admitted, account = await _admitted(call, request)
    spec = admitted["spec"]
    bound = _bound(call, account, spec["boundObjectRef"])
    now, seconds = call.clock.now(), spec["expirationSeconds"]
    token = call.issuer.issue(
        call.plane.name,
        account,
        audiences=spec["audiences"],
        now=now,
        seconds=seconds,
        bound=bound,
        random=call.random,
        good_for=_EXTENDED if _may_be_kept(call, spec) else 0,
    )
    given = {"uid": account.uid, "creationTimestamp": metadata.timestamp(now)}
    expires = metadata.timestamp(int(now) + seconds)
    answered = {
        "kind": "TokenRequest",
        "apiVersion": TOKEN_REQUEST.resource.api_version,
        "metadata": {**admitted["metadata"], **given},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": expires},
    }
    return forms.made(call, answered)


async def _admitted(call: Call, request: Object) -> tuple[Object, Item]:
    """A request as policies and webhooks leave it, and whose token it wants."""
    told: Object = request.get("spec") or {}
    seconds = told.get("expirationSeconds")
    asked_for: Object = {
        "audiences": told.get("audiences") or [],
        "expirationSeconds": _USUAL if seconds is None else seconds,
        "boundObjectRef": told.get("boundObjectRef"),
    }
    made: Object = {
        "kind": TOKEN_REQUEST.resource.kind,
        "apiVersion": TOKEN_REQUEST.resource.api_version,
        "metadata": {"name": call.info.name, "namespace": call.namespace, **request["metadata"]},
        "spec": dict(asked_for),
        "status": _UNANSWERED,
    }
    write = writing.subresource_write(call, TOKEN_REQUEST, made, dry_run=call.dry_run)
    found: list[Item] = []

    def check() -> None:
        found.append(_account(call, write.new["metadata"]))
        spec = write.new["spec"] = {**asked_for, **(write.new.get("spec") or {})}
        spec["audiences"] = spec["audiences"] or [call.issuer.issuer(call.plane.name)]
        if problems := _problems(spec["expirationSeconds"]):
            raise causes.reject("TokenRequest", _GROUP, "", problems)

    await writing.pass_admission(call, write, check)
    return write.new, found[0]


def _may_be_kept(call: Call, spec: Object) -> bool:
    """Whether this is the token that admission gave to a pod, for this server alone."""
    return (
        spec["expirationSeconds"] == TOKEN_SECONDS
        and (spec["boundObjectRef"] or {}).get("kind") == "Pod"
        and set(spec["audiences"]) == {call.issuer.issuer(call.plane.name)}
    )


def _account(call: Call, meta: Object) -> Item:
    """The service account of the path, if the request means it too."""
    name = call.info.name
    if meta.get("name", name) != name:
        why = "must match the service account name if specified"
        problem = causes.invalid("metadata.name", meta["name"], why)
        raise causes.reject("TokenRequest", _GROUP, name, [problem])
    account = call.find(call.plane.state)
    if meta.get("uid", account.uid) != account.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on TokenRequest.{_GROUP} "{name}": the UID in the '
            f"token request ({meta['uid']}) does not match the UID of the service account "
            f"({account.uid})",
            details={"name": name, "group": _GROUP, "kind": "TokenRequest"},
        )
    return account


def _problems(seconds: int) -> list[causes.Cause]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        return [causes.invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [
            causes.invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")
        ]
    return []


def _bound(call: Call, account: Item, reference: dict[str, str] | None) -> list[Bound]:
    """What the token dies with; of a pod, its node is told too."""
    if reference is None:
        return []
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, version = _group_version(reference.get("apiVersion", ""))
    if group or kind not in _BINDABLE:
        told = f"{group}/{version}, Kind={kind}"
        raise BadRequest(f"cannot bind token to object of type {told}")
    if not name:
        raise BadRequest("Name parameter required.")
    plural, claim = _BINDABLE[kind]
    state = call.plane.state
    item = state.get(("", plural), "" if plural == "nodes" else account.namespace, name)
    if item is None:
        details = {"name": name, "kind": plural}
        raise NotFound(f'{plural} "{name}" not found', details=details)
    if kind == "Pod" and item.fields[_ACCOUNT_OF_POD] != account.name:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{account.name}" to pod running with different '
            "serviceaccount name."
        )
    if reference.get("uid") and reference["uid"] != item.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object '
            f"reference ({reference['uid']}) does not match the UID in record. The object might "
            "have been deleted and then recreated",
            details={"name": name, "kind": kind},
        )
    bound = [Bound(plural, claim, name, item.uid)]
    if kind == "Pod" and (node := bound_to(item)):
        there = state.get(("", "nodes"), "", node)
        bound.append(Bound("nodes", "node", node, there.uid if there is not None else ""))
    return bound


def _group_version(told: str) -> tuple[str, str]:
    """Nonsense names nothing, so it is in no group."""
    group, slash, version = told.partition("/")
    if "/" in version:
        return "", ""
    return (group, version) if slash else ("", told)
