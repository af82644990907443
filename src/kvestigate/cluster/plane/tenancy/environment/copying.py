"""The right to copy a plane, or to bring it back to an earlier state.

A copy shows everything that it has to whoever gets hold of it, and gives everyone the permissions
that its roles and bindings give. So who copies has to be allowed to read all of it, and to make the
roles and bindings that the plane has no more (of which the past may have better ones). Who restores
has to be allowed to make every change that follows, one by one.

Rights are those of the plane as it is now, whatever the past said of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.access.interface import Authorizer
from kvestigate.cluster.plane.admission.rules.escalation import authorize_grant
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.state import Difference, PlaneState, diff
from kvestigate.cluster.plane.tenancy.environment.visible import listing, stored_kinds


def authorize_copy(
    authorizer: Authorizer, present: PlaneState, start: PlaneState, user: User
) -> None:
    """Forbidden, unless the user may copy the plane that is at `present` as it is in `start`."""
    for key in stored_kinds(present, start):
        authorizer.authorize(present, user, listing(key))
    for change in _changes(present, start):
        _authorize_grant(change, present, start, user)


def authorize_restore(
    authorizer: Authorizer, present: PlaneState, past: PlaneState, user: User
) -> None:
    """Forbidden, unless the user may make every change from `present` to `past`."""
    authorized: set[tuple[str, ...]] = set()
    for change in _changes(present, past):
        request = _request(change)
        key = request.verb, request.group, request.resource, request.namespace
        if key not in authorized:
            authorizer.authorize(present, user, request)
            authorized.add(key)
        _authorize_grant(change, present, past, user)


def _changes(before: PlaneState, after: PlaneState) -> Iterator[Difference]:
    """Of objects that the API serves."""
    served = stored_kinds(before, after)
    return (change for change in diff(before, after) if change.resource in served)


def _request(change: Difference) -> RequestInfo:
    """The request that would make this change, without the name of the object."""
    (group, plural), before, after = change
    verb = "create" if before is None else "delete" if after is None else "update"
    item = after or before
    assert item is not None, "a difference has at least one side"
    return RequestInfo("POST", "", verb, group, "*", plural, item.namespace)


def _authorize_grant(
    change: Difference, present: PlaneState, later: PlaneState, user: User
) -> None:
    (group, plural), _, item = change
    if group == rbac.GROUP and item is not None:
        authorize_grant(present, later, user, plural, item)
