"""Webhooks that are asked before a stream or a proxy is opened."""

from __future__ import annotations

import pytest

from tests.cluster.plane.admission.policies.conftest import register
from tests.cluster.plane.admission.policies.judge import Judge, Object
from tests.cluster.plane.conftest import Api

PODS = "/api/v1/namespaces/default/pods"


def hook(judge: Judge) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"]}
    return judge.hook(rules=[{**rule, "resources": ["pods/exec", "pods/proxy"]}])


@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_a_webhook_sees_the_options_of_a_stream(hooked: Api, judge: Judge, kind: str) -> None:
    await register(hooked, kind, hook(judge))
    judge.response = {"allowed": False, "status": {"message": "not in there"}}
    answer = await hooked.get(f"{PODS}/a/exec?command=ls&command=-l&stdout=true&container=main")
    assert answer.status == 400
    assert answer.body["message"].endswith("denied the request: not in there")
    asked = judge.asked[0]
    assert asked["object"] == {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdout": True,
        "container": "main",
        "command": ["ls", "-l"],
    }
    shown = {"group": "", "version": "v1", "kind": "PodExecOptions"}
    assert (asked["kind"], asked["operation"], asked["options"]) == (shown, "CONNECT", None)
    assert (asked["name"], asked["subResource"], asked["oldObject"]) == ("a", "exec", None)


async def test_what_is_allowed_goes_on(hooked: Api, judge: Judge) -> None:
    await register(hooked, "validating", hook(judge))
    answer = await hooked.get(f"{PODS}/a/proxy/metrics/")
    assert (answer.status, answer.body["message"]) == (404, 'pods "a" not found')
    assert judge.asked[0]["object"]["path"] == "/metrics/"


async def test_streams_without_rules_are_not_asked_about(hooked: Api, judge: Judge) -> None:
    await register(hooked, "validating", hook(judge))
    assert (await hooked.post(f"{PODS}/a/attach?stdout=1", None)).status == 404
    assert judge.asked == []
