"""Policies and bindings of them, as short as tests want them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.plane.conftest import Api

GROUP = "/apis/admissionregistration.k8s.io/v1"
Enact = Callable[..., Awaitable[None]]


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
