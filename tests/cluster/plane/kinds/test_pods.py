"""Pods from creation to removal."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.kinds.pods.qos import qos_class
from kvestigate.cluster.plane.kinds.podspec.defaults import pull_policy
from tests.cluster.plane.conftest import Api
from tests.cluster.plane.kinds.conftest import PODS, STRATEGIC, pod

A = f"{PODS}/a"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        (f"nginx@sha256:{'a' * 64}", "IfNotPresent"),
        (f"nginx:latest@sha256:{'a' * 64}", "Always"),
        ("REGISTRY.example.com/team/app", "Always"),
        ("Upper", "IfNotPresent"),
        ("", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
    ],
)
def test_the_tag_decides_whether_an_image_is_pulled_again(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def requirements(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None
) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [requirements()]}, "BestEffort"),
        ({"containers": [requirements({"cpu": "0"}, {"cpu": "0"})]}, "BestEffort"),
        ({"containers": [requirements({"example.com/x": "1"})]}, "BestEffort"),
        ({"containers": [requirements({"cpu": "1"})]}, "Burstable"),
        ({"containers": [requirements(BOTH, BOTH)]}, "Guaranteed"),
        ({"containers": [requirements(BOTH, {"cpu": "1000m", "memory": "1024Mi"})]}, "Guaranteed"),
        ({"containers": [requirements(BOTH, {"cpu": "2", "memory": "1Gi"})]}, "Burstable"),
        ({"containers": [requirements(BOTH, BOTH), requirements()]}, "Burstable"),
        (
            {"containers": [requirements(BOTH, BOTH)], "initContainers": [requirements()]},
            "Burstable",
        ),
        (
            {"containers": [requirements()], "resources": {"requests": BOTH, "limits": BOTH}},
            "Guaranteed",
        ),
    ],
)
def test_the_class_of_service_follows_from_the_containers(
    spec: dict[str, Any], expected: str
) -> None:
    assert qos_class(spec) == expected


BLANK = {"name": "MODE", "value": "x"}
LIKE = pod(
    container={"env": [BLANK], "command": ["run"], "volumeMounts": []},
    volumes=[{"name": "kube-api-access-abcde", "emptyDir": {}}],
)


@pytest.mark.parametrize(
    ("container", "spec", "field"),
    [
        ({"env": [{"name": "", "value": "x"}]}, {}, "spec.containers[0].env[0].name"),
        ({"env": [{**BLANK, "valueFrom": {}}]}, {}, "spec.containers[0].env[0].valueFrom"),
        ({"image": " x"}, {}, "spec.containers[0].image"),
        (
            {"volumeMounts": [{"name": "kube-api-access-fghij", "mountPath": "/x"}]},
            {},
            "spec.containers[0].volumeMounts[0].name",
        ),
        (
            {},
            {"volumes": [{"name": "kube-api-access-abcde", "emptyDir": {}}] * 2},
            "spec.volumes[1].name",
        ),
        (
            {},
            {"volumes": [{"name": "kube-api-access-abcd_", "emptyDir": {}}]},
            "spec.volumes[0].name",
        ),
    ],
)
async def test_a_pod_that_is_nearly_like_a_valid_one_is_judged_by_itself(
    api: Api, container: dict[str, Any], spec: dict[str, Any], field: str
) -> None:
    assert (await api.post(PODS, LIKE)).status == 201
    [valid] = LIKE["spec"]["containers"]
    others = {**LIKE["spec"], "containers": [{**valid, **container}], **spec}
    answer = await api.post(PODS, {"metadata": {"name": "b"}, "spec": others})
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == field


async def test_claims_of_ephemeral_volumes_are_judged_by_the_name_of_each_pod(api: Api) -> None:
    template = {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    assert (await api.post(PODS, pod("a", volumes=[volume]))).status == 201
    answer = await api.post(PODS, pod("a" * 250, volumes=[volume]))
    assert answer.status == 422
    assert "PVC name" in answer.body["message"]


async def test_a_new_pod_is_pending_in_its_first_generation(api: Api) -> None:
    made = (await api.post(PODS, {**pod(), "status": {"phase": "Running"}})).body
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1


async def test_every_container_can_reach_the_token_of_the_account(api: Api) -> None:
    init = [{"name": "init", "image": "x:1"}]
    spec = (await api.post(PODS, pod(initContainers=init))).body["spec"]
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    for container in (*spec["containers"], *spec["initContainers"]):
        (mount,) = container["volumeMounts"]
        assert mount == {
            "name": volume["name"],
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        }


@pytest.mark.parametrize(
    ("account", "spec", "mounted"),
    [
        ({}, {}, True),
        ({"automountServiceAccountToken": False}, {}, False),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
        ({}, {"automountServiceAccountToken": False}, False),
    ],
)
async def test_the_pod_has_the_last_word_on_its_token(
    api: Api, account: dict[str, Any], spec: dict[str, Any], mounted: bool
) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.post(accounts, {"metadata": {"name": "builder"}, **account})
    made = (await api.post(PODS, pod(serviceAccountName="builder", **spec))).body
    assert ("volumes" in made["spec"]) is mounted
    assert made["spec"]["serviceAccount"] == "builder"


async def test_a_pod_takes_the_pull_secrets_of_its_account(api: Api) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.post(accounts, {"metadata": {"name": "b"}, "imagePullSecrets": [{"name": "pull"}]})
    taken = (await api.post(PODS, pod(serviceAccountName="b"))).body["spec"]["imagePullSecrets"]
    own = pod("own", serviceAccountName="b", imagePullSecrets=[{"name": "mine"}])
    kept = (await api.post(PODS, own)).body["spec"]["imagePullSecrets"]
    assert (taken, kept) == ([{"name": "pull"}], [{"name": "mine"}])


async def test_labels_named_by_keys_become_part_of_selectors(api: Api) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash", "absent"],
    }
    sent = pod(topologySpreadConstraints=[spread])
    sent["metadata"]["labels"] = {"hash": "x1"}
    (made,) = (await api.post(PODS, sent)).body["spec"]["topologySpreadConstraints"]
    assert made["labelSelector"]["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["x1"]}
    ]


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"containers": [{"name": "main", "image": "nginx:2"}]}, True),
        ({"containers": [{"name": "main", "command": ["x"]}]}, False),
        ({"containers": [{"name": "other", "image": "x"}]}, False),
        ({"activeDeadlineSeconds": 60}, True),
        ({"nodeName": "other"}, False),
        ({"nodeSelector": {"a": "b"}}, False),
        ({"terminationGracePeriodSeconds": 1}, False),
        ({"schedulingGates": [{"name": "x"}]}, False),
    ],
)
async def test_few_fields_of_a_pod_may_change(
    bound: Api, change: dict[str, Any], allowed: bool
) -> None:
    answer = await bound.patch(A, {"spec": change}, STRATEGIC)
    assert answer.status == (200 if allowed else 422)
    after = (await bound.get(A)).body["metadata"]["generation"]
    assert after == (2 if allowed else 1)


async def test_deadlines_only_move_closer(bound: Api) -> None:
    statuses = [
        (await bound.patch(A, {"spec": {"activeDeadlineSeconds": seconds}}, STRATEGIC)).status
        for seconds in (60, 30, 45, None)
    ]
    assert statuses == [200, 200, 422, 422]


async def test_a_gated_pod_can_be_narrowed_to_fewer_nodes(api: Api) -> None:
    await api.post(PODS, pod(schedulingGates=[{"name": "wait"}], nodeSelector={"a": "b"}))
    statuses = [
        (await api.patch(A, {"spec": {"nodeSelector": selector}})).status
        for selector in ({"c": "d"}, {"a": "x"}, {"a": None})
    ]
    assert statuses == [200, 422, 422]
    assert (await api.patch(A, {"spec": {"schedulingGates": None}})).status == 200
    assert (await api.patch(A, {"spec": {"nodeSelector": {"e": "f"}}})).status == 422


async def test_tolerations_can_only_be_added(bound: Api) -> None:
    present = (await bound.get(A)).body["spec"].get("tolerations", [])
    more = [*present, {"key": "x", "operator": "Exists"}]
    assert (await bound.patch(A, {"spec": {"tolerations": more}})).status == 200
    changed = [*present, {"key": "y", "operator": "Exists"}]
    assert (await bound.patch(A, {"spec": {"tolerations": changed}})).status == 422


class TestStatus:
    async def test_one_address_is_told_under_both_names(self, bound: Api) -> None:
        await bound.patch(f"{A}/status", {"status": {"podIP": "10.1.0.7"}}, STRATEGIC)
        status = (await bound.get(A)).body["status"]
        assert status["podIPs"] == [{"ip": "10.1.0.7"}]
        await bound.patch(f"{A}/status", {"status": {"podIPs": None, "podIP": "10.1.0.8"}})
        assert (await bound.get(A)).body["status"]["podIPs"] == [{"ip": "10.1.0.8"}]

    async def test_the_class_of_service_stays(self, bound: Api) -> None:
        wrong = await bound.patch(f"{A}/status", {"status": {"qosClass": "Guaranteed"}})
        assert wrong.status == 422
        await bound.patch(f"{A}/status", {"status": {"qosClass": None}})
        assert (await bound.get(A)).body["status"]["qosClass"] == "BestEffort"

    async def test_it_does_not_touch_the_spec_or_count_as_a_generation(self, bound: Api) -> None:
        change = {"spec": {"nodeName": "other"}, "status": {"message": "hi"}}
        after = (await bound.patch(f"{A}/status", change)).body
        assert after["spec"]["nodeName"] == "n"
        assert after["metadata"]["generation"] == 1

    async def test_what_ended_for_good_does_not_run_again(self, api: Api) -> None:
        await api.post(PODS, pod(nodeName="n", restartPolicy="Never"))

        async def report(state: dict[str, Any]) -> int:
            container: dict[str, Any] = {
                "name": "main",
                "image": "x",
                "imageID": "x",
                "state": state,
            }
            container |= {"ready": False, "restartCount": 0}
            statuses = {"status": {"containerStatuses": [container]}}
            return (await api.patch(f"{A}/status", statuses)).status

        assert await report({"terminated": {"exitCode": 0}}) == 200
        assert await report({"running": {}}) == 422


class TestDeletion:
    async def test_a_running_pod_is_given_its_grace_period(self, bound: Api) -> None:
        marked = (await bound.delete(A)).body["metadata"]
        assert marked["deletionGracePeriodSeconds"] == 30
        assert marked["generation"] == 2
        assert (await bound.get(A)).status == 200

    async def test_a_second_request_can_only_hurry(self, bound: Api) -> None:
        await bound.delete(f"{A}?gracePeriodSeconds=20")
        longer = (await bound.delete(f"{A}?gracePeriodSeconds=60")).body["metadata"]
        shorter = (await bound.delete(f"{A}?gracePeriodSeconds=5")).body["metadata"]
        assert longer["deletionGracePeriodSeconds"] == 20
        assert shorter["deletionGracePeriodSeconds"] == 5

    async def test_the_node_has_the_last_word(self, bound: Api) -> None:
        await bound.delete(A)
        assert (await bound.delete(f"{A}?gracePeriodSeconds=0")).status == 200
        assert (await bound.get(A)).status == 404

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    async def test_a_finished_pod_goes_at_once(self, bound: Api, phase: str) -> None:
        await bound.patch(f"{A}/status", {"status": {"phase": phase}})
        assert (await bound.delete(A)).body["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await bound.get(A)).status == 404

    async def test_a_pod_without_a_node_goes_at_once(self, api: Api) -> None:
        await api.post(PODS, pod())
        await api.delete(f"{A}?gracePeriodSeconds=60")
        assert (await api.get(A)).status == 404


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("spec.nodeName=n", 1),
        ("spec.nodeName=", 1),
        ("spec.host=n", 1),
        ("status.phase=Running", 1),
        ("status.phase!=Running", 1),
        ("spec.restartPolicy=Always", 2),
        ("spec.schedulerName=default-scheduler,spec.serviceAccountName=default", 2),
        ("spec.hostNetwork=false", 2),
        ("status.podIP=", 2),
        ("metadata.name=b", 1),
    ],
)
async def test_pods_are_selected_by_fields(bound: Api, selector: str, count: int) -> None:
    await bound.post(PODS, pod("b"))
    assert len((await bound.get(f"{PODS}?fieldSelector={selector}")).body["items"]) == count


async def test_other_fields_select_nothing(api: Api) -> None:
    refused = await api.get(f"{PODS}?fieldSelector=spec.priority=1")
    assert refused.status == 400
    assert refused.body["message"] == "field label not supported: spec.priority"


async def test_what_is_remembered_of_a_pod_hides_no_advice_about_one_like_it(api: Api) -> None:
    hides = "env[1]: hides previous definition of"
    for name, later, advised in (
        ("a", "$(A)-more", False),
        ("b", "other", True),
        ("c", "$(A)-again", False),
        ("d", "other", True),
    ):
        variables = [{"name": "A", "value": "1"}, {"name": "A", "value": later}]
        container = {"name": "main", "image": "app:1", "env": variables}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        made = await api.post("/api/v1/namespaces/default/pods", pod)
        assert made.status == 201
        assert (hides in made.headers.get("warning")) is advised


async def test_annotations_are_advised_about_on_pods_that_are_like_others(api: Api) -> None:
    container = {"name": "main", "image": "app:1"}
    for name, old in (("a", {}), ("b", {"security.alpha.kubernetes.io/sysctls": "x"})):
        meta = {"name": name, "annotations": old}
        pod = {"metadata": meta, "spec": {"containers": [container]}}
        made = await api.post("/api/v1/namespaces/default/pods", pod)
        assert ("sysctls" in made.headers.get("warning")) is bool(old)
