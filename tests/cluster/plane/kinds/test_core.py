"""The smaller kinds of the core group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

HERE = "/api/v1/namespaces/default"
EVENTS = f"{HERE}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def named(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


async def causes(api: Api, path: str, change: dict[str, Any]) -> list[tuple[str, str]]:
    """Field and first line of each cause for which a change is refused; empty if it is not."""
    answer = await api.patch(path, change)
    found = (answer.body.get("details") or {}).get("causes") or []
    assert bool(found) == (answer.status == 422), answer.body
    return [(cause["field"], cause["message"].partition("\n")[0]) for cause in found]


class TestSecrets:
    async def test_text_is_stored_as_bytes_and_wins(self, api: Api) -> None:
        sent = named(data={"a": "b2xk", "b": "a2VwdA=="}, stringData={"a": "new"})
        made = (await api.post(f"{HERE}/secrets", sent)).body
        assert made["data"] == {"a": "bmV3", "b": "a2VwdA=="}
        assert made["type"] == "Opaque"
        assert "stringData" not in made

    async def test_the_type_stays(self, api: Api) -> None:
        await api.post(f"{HERE}/secrets", named())
        found = await causes(api, f"{HERE}/secrets/a", {"type": "other"})
        assert found == [("type", 'Invalid value: "other": field is immutable')]


@pytest.mark.parametrize("plural", ["secrets", "configmaps"])
async def test_what_is_declared_immutable_is(api: Api, plural: str) -> None:
    path = f"{HERE}/{plural}/a"
    await api.post(f"{HERE}/{plural}", named(data={"a": "YQ=="}, immutable=True))
    sealed = "Forbidden: field is immutable when `immutable` is set"
    assert await causes(api, path, {"data": {"a": "Yg=="}}) == [("data", sealed)]
    assert await causes(api, path, {"immutable": None}) == [("immutable", sealed)]
    assert await causes(api, path, {"metadata": {"labels": {"a": "b"}}}) == []


async def test_config_maps_hold_a_mebibyte_together(api: Api) -> None:
    half = "x" * (512 * 1024)
    fits = await api.post(f"{HERE}/configmaps", named(data={"a": half, "b": half}))
    assert fits.status == 201
    too_much = await api.post(f"{HERE}/configmaps", named("b", data={"a": half, "b": f"{half}x"}))
    assert too_much.status == 422


class TestClaims:
    SPEC: dict[str, Any] = {  # noqa: RUF012 - a constant of the class
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    IMMUTABLE = (
        "spec",
        "Forbidden: spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims",
    )

    @staticmethod
    def size(text: str) -> dict[str, Any]:
        return {"spec": {"resources": {"requests": {"storage": text}}}}

    async def test_only_a_bound_claim_grows(self, api: Api) -> None:
        path = f"{HERE}/persistentvolumeclaims/a"
        await api.post(f"{HERE}/persistentvolumeclaims", named(spec=self.SPEC))
        assert await causes(api, path, self.size("2Gi")) == [self.IMMUTABLE]
        bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
        assert (await api.patch(f"{path}/status", bound)).status == 200
        assert await causes(api, path, self.size("3Gi")) == []
        assert await causes(api, path, self.size("2Gi")) == []
        shrunk = await causes(api, path, self.size("512Mi"))
        assert shrunk == [
            (
                "spec.resources.requests.storage",
                "Forbidden: field can not be less than status.capacity",
            )
        ]

    async def test_volume_and_class_are_told_once(self, api: Api) -> None:
        path = f"{HERE}/persistentvolumeclaims/a"
        await api.post(f"{HERE}/persistentvolumeclaims", named(spec=self.SPEC))
        assert await causes(api, path, {"spec": {"volumeName": "v"}}) == []
        assert await causes(api, path, {"spec": {"storageClassName": "fast"}}) == []
        assert await causes(api, path, {"spec": {"volumeName": "w"}}) == [self.IMMUTABLE]
        assert await causes(api, path, {"spec": {"storageClassName": "x"}}) == [self.IMMUTABLE]


class TestVolumes:
    async def test_the_source_stays_and_the_phase_tells_when(self, api: Api) -> None:
        source = {"hostPath": {"path": "/data"}}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
        volumes = "/api/v1/persistentvolumes"
        made = (await api.post(volumes, named(spec=spec))).body
        assert made["status"]["phase"] == "Pending"
        assert made["status"]["lastPhaseTransitionTime"]
        found = await causes(api, f"{volumes}/a", {"spec": {"hostPath": {"path": "/other"}}})
        assert found == [
            (
                "spec.persistentvolumesource",
                "Forbidden: spec.persistentvolumesource is immutable after creation",
            )
        ]


class TestNodes:
    async def test_ranges_and_provider_are_told_once(self, api: Api) -> None:
        await api.post("/api/v1/nodes", named(spec={"podCIDR": "10.1.0.0/24"}))
        path = "/api/v1/nodes/a"
        assert (await api.get(path)).body["spec"]["podCIDRs"] == ["10.1.0.0/24"]
        other = {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}
        assert [field for field, _ in await causes(api, path, other)] == ["spec.podCIDRs"]
        assert await causes(api, path, {"spec": {"providerID": "p"}}) == []
        found = await causes(api, path, {"spec": {"providerID": "q"}})
        assert [field for field, _ in found] == ["spec.providerID"]

    async def test_what_nothing_is_said_of_can_all_be_allocated(self, api: Api) -> None:
        await api.post("/api/v1/nodes", named(status={"capacity": {"cpu": "4", "pods": "110"}}))
        status = (await api.get("/api/v1/nodes/a")).body["status"]
        assert status["allocatable"] == {"cpu": "4", "pods": "110"}

    async def test_cordoned_nodes_are_selected(self, api: Api) -> None:
        await api.post("/api/v1/nodes", named("a", spec={"unschedulable": True}))
        await api.post("/api/v1/nodes", named("b"))
        found = await api.get("/api/v1/nodes?fieldSelector=spec.unschedulable=true")
        assert [item["metadata"]["name"] for item in found.body["items"]] == ["a"]


async def test_limits_stand_in_for_each_other(api: Api) -> None:
    """A maximum is the default limit, that the default request, else the minimum is."""
    given = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}
    made = await api.post(f"{HERE}/limitranges", named(spec={"limits": [given]}))
    (limit,) = made.body["spec"]["limits"]
    assert limit["default"] == {"cpu": "2"}
    assert limit["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}


class TestReplicationControllers:
    TEMPLATE: dict[str, Any] = {  # noqa: RUF012 - a constant of the class
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }

    async def test_labels_and_selector_come_from_the_template(self, api: Api) -> None:
        spec = {"template": self.TEMPLATE}
        made = (await api.post(f"{HERE}/replicationcontrollers", named(spec=spec))).body
        assert made["spec"]["selector"] == made["metadata"]["labels"] == {"app": "web"}
        assert made["spec"]["replicas"] == 1
        assert made["status"] == {"replicas": 0}

    async def test_generations_count_specs_only(self, api: Api) -> None:
        await api.post(f"{HERE}/replicationcontrollers", named(spec={"template": self.TEMPLATE}))
        path = f"{HERE}/replicationcontrollers/a"
        for change, generation in (
            ({"spec": {"replicas": 3}}, 2),
            ({"spec": {"replicas": 3}}, 2),
            ({"metadata": {"labels": {"x": "y"}}}, 2),
        ):
            assert (await api.patch(path, change)).body["metadata"]["generation"] == generation


class TestEvents:
    OLD = named(
        involvedObject={"kind": "Pod", "name": "p", "namespace": "default"},
        reason="Started",
        message="it runs",
        type="Normal",
        count=2,
        source={"component": "kubelet"},
        firstTimestamp="2026-01-01T00:00:00Z",
    )
    NEW = named(
        "b",
        regarding={"kind": "Pod", "name": "p", "namespace": "default"},
        reason="Scheduled",
        action="Binding",
        note="it has a node",
        type="Normal",
        eventTime="2026-01-01T00:00:00.000001Z",
        reportingController="example.com/scheduler",
        reportingInstance="one",
    )

    async def test_both_groups_show_one_event(self, api: Api) -> None:
        await api.post(EVENTS, self.OLD)
        seen = (await api.get(f"{NEW_EVENTS}/a")).body
        assert (seen["kind"], seen["apiVersion"]) == ("Event", "events.k8s.io/v1")
        assert seen["regarding"] == self.OLD["involvedObject"]
        assert (seen["note"], seen["deprecatedCount"]) == ("it runs", 2)
        assert seen["deprecatedSource"] == {"component": "kubelet"}
        await api.post(NEW_EVENTS, self.NEW)
        seen = (await api.get(f"{EVENTS}/b")).body
        assert seen["involvedObject"] == self.NEW["regarding"]
        assert (seen["message"], seen["reportingComponent"]) == (
            "it has a node",
            "example.com/scheduler",
        )
        assert (seen["source"], seen["firstTimestamp"]) == ({}, None)

    async def test_both_groups_list_all(self, api: Api) -> None:
        await api.post(EVENTS, self.OLD)
        await api.post(NEW_EVENTS, self.NEW)
        for path, field in ((EVENTS, "involvedObject"), (NEW_EVENTS, "regarding")):
            items = (await api.get(path)).body["items"]
            assert [item[field]["name"] for item in items] == ["p", "p"]

    async def test_a_change_through_one_group_keeps_what_the_other_said(self, api: Api) -> None:
        made = (await api.post(EVENTS, self.OLD)).body
        changed = await api.patch(f"{NEW_EVENTS}/a", {"metadata": {"labels": {"x": "y"}}})
        assert changed.status == 200
        after = (await api.get(f"{EVENTS}/a")).body
        assert {**after, "metadata": {}} == {**made, "metadata": {}}

    @pytest.mark.parametrize(
        ("path", "selector"),
        [
            (EVENTS, "involvedObject.name=p"),
            (EVENTS, "reason=Started,type=Normal,source=kubelet"),
            (NEW_EVENTS, "regarding.name=p,regarding.kind=Pod"),
            (NEW_EVENTS, "reason=Started"),
        ],
    )
    async def test_they_are_selected_by_what_they_are_about(
        self, api: Api, path: str, selector: str
    ) -> None:
        await api.post(EVENTS, self.OLD)
        assert len((await api.get(f"{path}?fieldSelector={selector}")).body["items"]) == 1


async def test_deprecated_kinds_say_so_with_every_answer(api: Api) -> None:
    told = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    for answer in (
        await api.get(f"{HERE}/endpoints"),
        await api.post(f"{HERE}/endpoints", named()),
        await api.get(f"{HERE}/endpoints/a"),
    ):
        assert answer.headers.get_all("warning") == [told]
