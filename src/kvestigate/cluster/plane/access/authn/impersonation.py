"""Impersonation: the `Impersonate-*` headers, and who may use them for whom. Pure.

There are two ways to be allowed, as in kube-apiserver 1.36. The old one is the verb `impersonate`
on the users, groups, uids and extras that are impersonated. Constrained impersonation is the verb
`impersonate:MODE` on those, and `impersonate-on:MODE:VERB` on the requested resource; the mode
follows from the kind of user that is impersonated. The constrained way is tried first, and the
error is that of the first way that was refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from msgspec import structs

from kvestigate.cluster.plane.access.authn.service_accounts import groups as account_groups
from kvestigate.cluster.plane.access.interface import Authorizer
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    User,
)
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import BadRequest, Forbidden
from kvestigate.http.message import Headers
from kvestigate.kube import names

_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_NODE = "system:node:"
_NODES = "system:nodes"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_AUTHENTICATION = "authentication.k8s.io"


def requested_user(headers: Headers) -> User | None:
    """The user that the headers name, with no groups added; None without such headers."""
    if _PREFIX not in headers.names:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        if name.startswith(_EXTRA):
            key = unquote(name.removeprefix(_EXTRA)).lower()
            extra[key] = (*extra.get(key, ()), value)
    user = User(
        headers.get("impersonate-user"),
        tuple(headers.get_all("impersonate-group")),
        headers.get("impersonate-uid"),
        extra,
    )
    if not user.name and (user.groups or user.uid or extra):
        raise BadRequest(f"requested {_in_go(user)} without impersonating a user name")
    return user if user.name else None


def impersonate(
    authorizer: Authorizer, state: PlaneState, requester: User, target: User, info: RequestInfo
) -> User:
    """The user to make the request as; Forbidden if the requester may not impersonate it."""
    refusal: Forbidden | None = None
    for mode in _modes(requester, target):
        try:
            for required in _required_permissions(mode, target, info):
                authorizer.authorize(state, requester, required)
        except Forbidden as error:
            refusal = refusal or error
        else:
            return _complete(target, constrained=bool(mode))
    assert refusal is not None, "plain impersonation is always tried"
    raise refusal


def _modes(requester: User, target: User) -> Iterator[str]:
    only_named = not (target.groups or target.uid or target.extra)
    if node := _node(target.name):
        on_that_node = requester.extra.get(_NODE_NAME) == (node,)
        if only_named and on_that_node and requester.name.startswith(_ACCOUNT):
            yield "associated-node"
        if only_named:
            yield "arbitrary-node"
    elif _account(target.name):
        if only_named:
            yield "serviceaccount"
    elif MASTERS not in target.groups and "" not in target.groups:
        yield "user-info"
    yield ""


def _required_permissions(mode: str, target: User, info: RequestInfo) -> Iterator[RequestInfo]:
    """The requests that the requester must be allowed to make, in the order of the checks."""
    if mode:
        yield structs.replace(info, verb=f"impersonate-on:{mode}:{info.verb}")
    permission = partial(_permission, f"impersonate:{mode}" if mode else "impersonate")
    group = _AUTHENTICATION if mode else ""
    account, node = _account(target.name), _node(target.name)
    if account:
        yield permission(group, "serviceaccounts", account[1], namespace=account[0])
    elif mode and node:
        # The permission is for the node that the requester runs on, whichever that is.
        yield permission(group, "nodes", "*" if mode == "associated-node" else node)
    else:
        yield permission(group, "users", target.name)
    if target.uid:
        yield permission(_AUTHENTICATION, "uids", target.uid)
    for name in target.groups:
        yield permission(group, "groups", name)
    for key, values in target.extra.items():
        for value in values:
            yield permission(_AUTHENTICATION, "userextras", value, subresource=key)


def _permission(
    verb: str, group: str, resource: str, name: str, *, namespace: str = "", subresource: str = ""
) -> RequestInfo:
    return RequestInfo(
        "POST", "", verb, group, "v1", resource, namespace, name, subresource=subresource
    )


def _complete(target: User, *, constrained: bool) -> User:
    """The user with the groups that authentication would give it."""
    groups = target.groups
    if (account := _account(target.name)) and not groups:
        groups = account_groups(account[0])
    elif constrained and _node(target.name):
        groups = (_NODES,)
    if target.name == ANONYMOUS.name:
        groups = _with(groups, UNAUTHENTICATED)
    elif UNAUTHENTICATED not in groups:
        groups = _with(groups, AUTHENTICATED)
    return replace(target, groups=groups)


def _with(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)


def _account(user: str) -> tuple[str, str] | None:
    """(namespace, name) if the user is a service account."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    valid = not names.label_problems(namespace) and not names.subdomain_problems(name)
    return (namespace, name) if valid else None


def _node(user: str) -> str:
    """The node's name if the user is a kubelet, else empty."""
    name = user.removeprefix(_NODE)
    return name if user.startswith(_NODE) and not names.subdomain_problems(name) else ""


def _in_go(user: User) -> str:
    """A user as kube-apiserver prints it in errors."""
    groups = f"{{{_strings(user.groups)}}}" if user.groups else "(nil)"
    pairs = (f'"{key}":[]string{{{_strings(values)}}}' for key, values in user.extra.items())
    extra = f"{{{', '.join(pairs)}}}" if user.extra else "(nil)"
    named = f'Name:"{user.name}", UID:"{user.uid}"'
    return (
        f"&user.DefaultInfo{{{named}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}"
    )


def _strings(values: tuple[str, ...]) -> str:
    return ", ".join(f'"{value}"' for value in values)
