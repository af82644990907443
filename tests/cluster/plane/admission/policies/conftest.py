"""Policies and bindings of them, as short as tests want them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.egress.addresses import Allowance
from kvestigate.cluster.plane.egress.dialer import Dialer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.plane.admission.policies.judge import Judge, Object, judging
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.static_tokens import StaticTokens

GROUP = "/apis/admissionregistration.k8s.io/v1"
Enact = Callable[..., Awaitable[None]]


@pytest.fixture
async def judge() -> AsyncIterator[Judge]:
    async with judging() as found:
        yield found


def _reaching() -> Backends:
    return Backends(dialer=Dialer([Allowance.parse("127.0.0.0/8")]))


@pytest.fixture
async def hooked(judge: Judge) -> AsyncIterator[Api]:
    """A plane that can ask webhooks."""
    tokens = StaticTokens({digest(TOKEN): ADMIN})
    async with Store(MemoryBackend()) as store, aclosing(_reaching()) as backends:
        yield Api(ApiServer(store, tokens, AllowAll(), random=Random(1), backends=backends))


async def register(api: Api, kind: str, *hooks: Object, name: str = "c") -> None:
    path = f"{GROUP}/{kind}webhookconfigurations"
    made = await api.post(path, {"metadata": {"name": name}, "webhooks": list(hooks)})
    assert made.status == 201, made.body


def configure(expression: str) -> Object:
    """A mutation by a configuration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patching(expression: str) -> Object:
    """A mutation by a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


async def change(
    api: Api,
    *mutations: Object,
    name: str = "p",
    group: str = "",
    resources: tuple[str, ...] = ("configmaps",),
    **spec: Any,
) -> None:
    """Make a policy that changes writes, and a binding of it."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"]}
    match = {"resourceRules": [{**rule, "resources": resources}]}
    whole = {"matchConstraints": match, "reinvocationPolicy": "Never", **spec}
    whole["mutations"] = mutations
    for kind, told in (("policies", whole), ("policybindings", {"policyName": name})):
        path = f"{GROUP}/mutatingadmission{kind}"
        made = await api.post(path, {"metadata": {"name": name}, "spec": told})
        assert made.status == 201, made.body


@pytest.fixture
def enact(api: Api) -> Enact:
    """Make a policy of fields of its spec, and a binding that denies."""

    async def make(
        name: str = "p",
        *,
        rules: list[dict[str, Any]] | None = None,
        binding: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
        match = {"resourceRules": rules or [{**rule, "resources": ["configmaps"]}]}
        policy = {"metadata": {"name": name}, "spec": {"matchConstraints": match, **spec}}
        made = await api.post(f"{GROUP}/validatingadmissionpolicies", policy)
        assert made.status == 201, made.body
        bound = {"policyName": name, "validationActions": ["Deny"], **(binding or {})}
        whole = {"metadata": {"name": name}, "spec": bound}
        made = await api.post(f"{GROUP}/validatingadmissionpolicybindings", whole)
        assert made.status == 201, made.body

    return make
