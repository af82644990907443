"""ReplicaSets, Deployments, Jobs and their kin on a plane, from manifest to status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kvestigate.client.api import Propagation
from kvestigate.kube import builtins
from tests.bed import Object, Objects, plane
from tests.cluster.controllers.builders import NOW
from tests.cluster.controllers.conftest import Bed, running
from tests.cluster.controllers.objects import (
    daemon_set,
    deployment,
    job,
    node,
    replica_set,
    replication_controller,
    stateful_set,
)
from tests.virtual_clock import VirtualClock

RS, DEPLOYMENT = "replicaset-controller", "deployment-controller"


def image(name: str) -> Object:
    container = {"name": "main", "image": name}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def images(pods: Objects) -> list[str]:
    return sorted(
        pod["spec"]["containers"][0]["image"]
        for pod in pods.values()
        if "deletionTimestamp" not in pod["metadata"]
    )


def all_run(wanted: str, replicas: int = 3) -> Callable[[Objects], bool]:
    return lambda pods: images(pods) == [wanted] * replicas


def counts(number: int) -> Callable[[Objects], bool]:
    return lambda found: len(found) == number


def status_is(name: str, **wanted: Any) -> Any:
    def holds(found: Objects) -> bool:
        status = found.get(name, {}).get("status", {})
        return all(status.get(key) == value for key, value in wanted.items())

    return holds


def rolled_out(name: str, replicas: int) -> Any:
    counted = status_is(
        name, replicas=replicas, updatedReplicas=replicas, availableReplicas=replicas
    )

    def holds(found: Objects) -> bool:
        return bool(counted(found)) and _reason(found[name], "Progressing") in (
            "NewReplicaSetAvailable",
            "",
        )

    return holds


def _condition(obj: Object, kind: str) -> Object:
    found = obj.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == kind), {})


def _reason(obj: Object, kind: str) -> str:
    return str(_condition(obj, kind).get("reason", ""))


class TestReplicaSet:
    async def test_it_keeps_its_number(self, bed: Bed) -> None:
        async with running(bed, RS):
            await bed.create("replicasets", replica_set())
            await bed.until("replicasets", status_is("web", readyReplicas=3))
            victim = next(iter(await bed.all("pods")))
            await bed.api.delete(builtins.resource("pods"), victim, grace_seconds=0)
            pods = await bed.until("pods", lambda pods: len(pods) == 3 and victim not in pods)
            assert len(pods) == 3

    async def test_it_takes_no_more_than_it_must(self, bed: Bed) -> None:
        async with running(bed, RS):
            await bed.create("replicasets", replica_set(replicas=6))
            await bed.until("replicasets", status_is("web", readyReplicas=6))
            before = set(await bed.all("pods"))
            await bed.patch("replicasets", "web", {"spec": {"replicas": 2}})
            await bed.until("replicasets", status_is("web", replicas=2, readyReplicas=2))
            pods = await bed.until("pods", lambda pods: len(pods) == 2)
            assert set(pods) < before

    async def test_it_adopts_and_lets_go(self, bed: Bed) -> None:
        labelled = {"metadata": {"name": "stray", "labels": {"app": "web"}}}
        containers = {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}
        await bed.create("pods", labelled | containers)
        async with running(bed, RS):
            await bed.create("replicasets", replica_set(replicas=2))
            await bed.until("replicasets", status_is("web", readyReplicas=2))
            pods = await bed.all("pods")
            assert len(pods) == 2
            assert pods["stray"]["metadata"]["ownerReferences"][0]["name"] == "web"
            await bed.patch("pods", "stray", {"metadata": {"labels": {"app": "other"}}})
            pods = await bed.until("pods", lambda pods: len(pods) == 3)
            pods = await bed.until(
                "pods", lambda pods: not pods["stray"]["metadata"].get("ownerReferences")
            )

    async def test_a_refusal_is_a_condition_and_an_event(self, bed: Bed) -> None:
        async with running(bed, RS):
            broken = replica_set()
            broken["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
            await bed.create("replicasets", broken)
            found = await bed.until(
                "replicasets", lambda sets: _reason(sets["web"], "ReplicaFailure")
            )
            assert _reason(found["web"], "ReplicaFailure") == "FailedCreate"
            events = await bed.until("events", len)
            assert {each["reason"] for each in events.values()} == {"FailedCreate"}


class TestReplicationController:
    """Upstream's conformance tests of the kind, one by one."""

    NAME = "replicationcontroller-controller"

    async def test_it_creates_its_pods_and_counts_them(self, bed: Bed) -> None:
        async with running(bed, self.NAME):
            await bed.create("replicationcontrollers", replication_controller())
            await bed.until(
                "replicationcontrollers",
                status_is("web", replicas=3, readyReplicas=3, availableReplicas=3),
            )
            pods = await bed.all("pods")
            owner = pods.popitem()[1]["metadata"]["ownerReferences"][0]
            assert (owner["apiVersion"], owner["kind"]) == ("v1", "ReplicationController")
            events = await bed.until("events", lambda events: len(events) >= 3)
            assert {event["reason"] for event in events.values()} == {"SuccessfulCreate"}

    async def test_it_adopts_and_releases(self, bed: Bed) -> None:
        stray = {"metadata": {"name": "stray", "labels": {"app": "web"}}}
        containers = {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}
        await bed.create("pods", stray | containers)
        async with running(bed, self.NAME):
            await bed.create("replicationcontrollers", replication_controller(replicas=1))
            pods = await bed.until(
                "pods", lambda pods: pods["stray"]["metadata"].get("ownerReferences")
            )
            assert len(pods) == 1
            await bed.patch("pods", "stray", {"metadata": {"labels": {"app": "other"}}})
            await bed.until(
                "pods",
                lambda pods: (
                    len(pods) == 2 and not pods["stray"]["metadata"].get("ownerReferences")
                ),
            )

    async def test_it_scales(self, bed: Bed) -> None:
        async with running(bed, self.NAME):
            await bed.create("replicationcontrollers", replication_controller(replicas=1))
            resource = builtins.resource("replicationcontrollers")
            for size in (4, 2):
                scale = {"spec": {"replicas": size}}
                await bed.api.patch(resource, "web", scale, subresource="scale")
                await bed.until(
                    "replicationcontrollers",
                    status_is("web", replicas=size, readyReplicas=size),
                )

    async def test_a_quota_failure_comes_and_goes(self, bed: Bed) -> None:
        async with running(bed, self.NAME, "resourcequota-controller"):
            await bed.create(
                "resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
            )
            await bed.until("resourcequotas", lambda quotas: quotas["few"].get("status"))
            await bed.create("replicationcontrollers", replication_controller())
            failed = await bed.until(
                "replicationcontrollers", lambda found: _reason(found["web"], "ReplicaFailure")
            )
            condition = _condition(failed["web"], "ReplicaFailure")
            assert condition["reason"] == "FailedCreate"
            assert "exceeded quota: few, requested: pods=1, used: pods=2" in condition["message"]
            await bed.patch("replicationcontrollers", "web", {"spec": {"replicas": 2}})
            await bed.until(
                "replicationcontrollers",
                lambda found: not _reason(found["web"], "ReplicaFailure"),
            )


class TestDeployment:
    async def test_roll_out_and_its_history(self, bed: Bed) -> None:
        async with running(bed, RS, DEPLOYMENT):
            await bed.create("deployments", deployment())
            await bed.until("deployments", rolled_out("web", 3))
            for number in (2, 3):
                await bed.patch("deployments", "web", image(f"web:{number}"))
                await bed.until("pods", all_run(f"web:{number}"))
            sets = await bed.all("replicasets")
            assert sorted(each["spec"]["replicas"] for each in sets.values()) == [0, 0, 3]
            await bed.patch("deployments", "web", image("web:1"))
            await bed.until("pods", lambda pods: images(pods) == ["web:1"] * 3)
            found = await bed.until("deployments", rolled_out("web", 3))
            assert len(await bed.all("replicasets")) == 3
            notes = found["web"]["metadata"]["annotations"]
            assert notes["deployment.kubernetes.io/revision"] == "4"

    async def test_old_sets_are_forgotten_beyond_the_limit(self, bed: Bed) -> None:
        async with running(bed, RS, DEPLOYMENT):
            await bed.create("deployments", deployment(revisionHistoryLimit=1))
            await bed.until("deployments", rolled_out("web", 3))
            for number in (2, 3, 4):
                await bed.patch("deployments", "web", image(f"web:{number}"))
                await bed.until("pods", all_run(f"web:{number}"))
            await bed.until("replicasets", lambda sets: len(sets) == 2)

    async def test_recreate_never_mixes(self, bed: Bed) -> None:
        mixed: list[list[str]] = []

        def note(pods: Objects) -> bool:
            names = {each["spec"]["containers"][0]["image"] for each in pods.values()}
            mixed.append(sorted(names))
            return names == {"web:2"} and len(pods) == 3

        async with running(bed, RS, DEPLOYMENT):
            await bed.create("deployments", deployment(strategy={"type": "Recreate"}))
            await bed.until("deployments", rolled_out("web", 3))
            await bed.patch("deployments", "web", image("web:2"))
            await bed.until("pods", note)
        assert ["web:1", "web:2"] not in mixed

    async def test_a_paused_one_scales_but_does_not_roll(self, bed: Bed) -> None:
        async with running(bed, RS, DEPLOYMENT):
            await bed.create("deployments", deployment())
            await bed.until("deployments", rolled_out("web", 3))
            await bed.patch("deployments", "web", {"spec": {"paused": True}})
            change = image("web:2")
            change["spec"]["replicas"] = 5
            await bed.patch("deployments", "web", change)
            await bed.until("pods", lambda pods: images(pods) == ["web:1"] * 5)
            found = await bed.until(
                "deployments", lambda it: _reason(it["web"], "Progressing") == "DeploymentPaused"
            )
            assert len(await bed.all("replicasets")) == 1
            await bed.patch("deployments", "web", {"spec": {"paused": False}})
            await bed.until("pods", lambda pods: images(pods) == ["web:2"] * 5)
            assert found["web"]["spec"]["paused"]

    async def test_one_that_does_not_move_is_late(self) -> None:
        clock = VirtualClock(NOW)
        async with plane(clock) as api:
            bed = Bed(api, fate=lambda pod: None)
            async with running(bed, RS, DEPLOYMENT, clock=clock):
                await bed.create("deployments", deployment(progressDeadlineSeconds=30))
                await bed.until(
                    "deployments", status_is("web", updatedReplicas=3, unavailableReplicas=3)
                )
                await clock.sleeper()
                clock.advance(60)
                found = await bed.until(
                    "deployments",
                    lambda it: _condition(it["web"], "Progressing").get("status") == "False",
                )
                assert _reason(found["web"], "Progressing") == "ProgressDeadlineExceeded"

    async def test_a_taken_name_is_avoided(self, bed: Bed) -> None:
        async with running(bed, RS, DEPLOYMENT):
            await bed.create("deployments", deployment())
            await bed.until("deployments", rolled_out("web", 3))
        (name,) = await bed.all("replicasets")
        for kind in ("deployments", "replicasets"):
            only = "web" if kind == "deployments" else name
            await bed.api.delete(builtins.resource(kind), only, propagation=Propagation.BACKGROUND)
        squatter = replica_set("squatter", 0)
        squatter["metadata"]["name"] = name
        await bed.create("replicasets", squatter)
        async with running(bed, RS, DEPLOYMENT):
            await bed.create("deployments", deployment())
            found = await bed.until("deployments", status_is("web", availableReplicas=3))
            assert found["web"]["status"]["collisionCount"] == 1

    async def test_min_ready_seconds_hold_back_availability(self) -> None:
        clock = VirtualClock(NOW)
        ready = {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"}
            ],
        }
        async with plane(clock) as api:
            bed = Bed(api, fate=lambda pod: ready)
            async with running(bed, RS, DEPLOYMENT, clock=clock):
                await bed.create("deployments", deployment(minReadySeconds=10))
                await bed.until(
                    "replicasets",
                    lambda it: (
                        it
                        and all(
                            each.get("status", {}).get("readyReplicas") == 3 for each in it.values()
                        )
                    ),
                )
                found = await bed.get("deployments", "web")
                assert "availableReplicas" not in found.get("status", {})
                await clock.sleeper()
                clock.advance(11)
                await bed.until("deployments", status_is("web", availableReplicas=3))


class TestJob:
    JOB = "job-controller"

    async def test_indexed(self, bed: Bed) -> None:
        bed.fate = lambda pod: {"phase": "Succeeded"}
        async with running(bed, self.JOB):
            body = job(completions=4, parallelism=2, completionMode="Indexed")
            await bed.create("jobs", body)
            found = await bed.until("jobs", lambda jobs: _condition(jobs["work"], "Complete"))
            assert found["work"]["status"]["completedIndexes"] == "0-3"
            pods = (await bed.all("pods")).values()
            assert sorted(pod["spec"]["hostname"] for pod in pods) == [
                f"work-{n}" for n in range(4)
            ]
            env = [each["name"] for pod in pods for each in pod["spec"]["containers"][0]["env"]]
            assert env == ["JOB_COMPLETION_INDEX"] * 4

    async def test_one_that_fails_is_retried_after_a_pause(self) -> None:
        clock = VirtualClock(NOW)
        fates = iter(["Failed", "Succeeded"])
        async with plane(clock) as api:
            bed = Bed(api, fate=lambda pod: {"phase": next(fates)})
            async with running(bed, self.JOB, clock=clock):
                await bed.create("jobs", job())
                await bed.until("jobs", status_is("work", failed=1))
                await clock.sleeper()
                assert len(await bed.all("pods")) == 1
                clock.advance(11)
                found = await bed.until("jobs", lambda jobs: _condition(jobs["work"], "Complete"))
                assert found["work"]["status"]["succeeded"] == 1

    async def test_it_goes_when_its_time_is_over(self) -> None:
        clock = VirtualClock(NOW)
        async with plane(clock) as api:
            bed = Bed(api, fate=lambda pod: {"phase": "Succeeded"})
            names = (self.JOB, "ttl-after-finished-controller", "garbage-collector-controller")
            async with running(bed, *names, clock=clock):
                await bed.create("jobs", job(ttlSecondsAfterFinished=100))
                await bed.until("jobs", lambda jobs: _condition(jobs["work"], "Complete"))
                await clock.sleeper()
                clock.advance(101)
                await bed.until("jobs", lambda jobs: not jobs)
                await bed.until("pods", lambda pods: not pods)

    async def test_a_deleted_job_holds_no_pod_back(self, bed: Bed) -> None:
        bed.fate = lambda pod: None
        async with running(bed, self.JOB, "garbage-collector-controller"):
            await bed.create("jobs", job())
            await bed.until("pods", len)
            await bed.api.delete(
                builtins.resource("jobs"), "work", propagation=Propagation.BACKGROUND
            )
            await bed.until("pods", lambda pods: not pods)

    async def test_suspended_and_resumed(self, bed: Bed) -> None:
        async with running(bed, self.JOB):
            await bed.create("jobs", job(suspend=True))
            await bed.until("jobs", lambda jobs: _reason(jobs["work"], "Suspended"))
            assert await bed.all("pods") == {}
            await bed.patch("jobs", "work", {"spec": {"suspend": False}})
            await bed.until("jobs", status_is("work", active=1, ready=1))
            await bed.patch("jobs", "work", {"spec": {"suspend": True}})
            await bed.until("pods", lambda pods: not pods)


async def test_a_cron_job_on_a_clock() -> None:
    clock = VirtualClock(NOW + 5)
    async with plane(clock) as api:
        bed = Bed(api, fate=lambda pod: {"phase": "Succeeded"})
        async with running(bed, "cronjob-controller", "job-controller", clock=clock):
            body = {
                "metadata": {"name": "tick"},
                "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job()["spec"]}},
            }
            await bed.create("cronjobs", body)
            for number in range(1, 3):
                await clock.sleeper()
                clock.advance(300)
                await bed.until("jobs", counts(number))
            found = await bed.until(
                "cronjobs", lambda it: it["tick"]["status"].get("lastScheduleTime")
            )
            assert found["tick"]["status"]["lastScheduleTime"] == "2026-03-01T12:10:00Z"


class TestStatefulSet:
    NAME = "statefulset-controller"
    CLAIMS: ClassVar[list[Object]] = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]

    async def test_names_claims_and_order(self, bed: Bed) -> None:
        births: list[str] = []

        def note(pods: Objects) -> bool:
            births.extend(name for name in pods if name not in births)
            return len(births) == 3

        async with running(bed, self.NAME):
            await bed.create("statefulsets", stateful_set(volumeClaimTemplates=self.CLAIMS))
            pods = await bed.until("pods", note)
            assert births == ["db-0", "db-1", "db-2"]
            await bed.until("statefulsets", status_is("db", availableReplicas=3))
            assert set(await bed.all("persistentvolumeclaims")) == {
                f"data-db-{n}" for n in range(3)
            }
            volumes = pods["db-1"]["spec"]["volumes"]
            assert volumes[0]["persistentVolumeClaim"]["claimName"] == "data-db-1"
            told = "Create Pod db-0 in StatefulSet db successful"
            await bed.until("events", lambda it: told in {e["message"] for e in it.values()})

    async def test_an_update_and_its_history(self, bed: Bed) -> None:
        async with running(bed, self.NAME):
            await bed.create("statefulsets", stateful_set())
            await bed.until("statefulsets", status_is("db", availableReplicas=3))
            await bed.patch("statefulsets", "db", image("db:2"))
            await bed.until("pods", lambda pods: images(pods) == ["db:2"] * 3)
            found = await bed.until(
                "statefulsets", status_is("db", updatedReplicas=3, currentReplicas=3)
            )
            status = found["db"]["status"]
            assert status["currentRevision"] == status["updateRevision"]
            revisions = await bed.all("controllerrevisions")
            assert sorted(each["revision"] for each in revisions.values()) == [1, 2]
            await bed.patch("statefulsets", "db", image("db:1"))
            await bed.until("pods", lambda pods: images(pods) == ["db:1"] * 3)
            revisions = await bed.all("controllerrevisions")
            assert sorted(each["revision"] for each in revisions.values()) == [2, 3]


async def _ready_node(bed: Bed, name: str) -> None:
    """Without the taint that a new node is given until it is ready."""
    await bed.create("nodes", node(name))
    await bed.patch("nodes", name, {"spec": {"taints": None}})


async def test_a_daemon_set_follows_the_nodes(embedded: Bed) -> None:
    async with running(embedded, "daemonset-controller"):
        for name in ("a", "b"):
            await _ready_node(embedded, name)
        await embedded.create("daemonsets", daemon_set())
        await embedded.until("daemonsets", status_is("agent", numberAvailable=2))
        await _ready_node(embedded, "c")
        await embedded.until("daemonsets", status_is("agent", numberAvailable=3))
        await embedded.patch("daemonsets", "agent", image("agent:2"))
        await embedded.until("pods", lambda pods: images(pods) == ["agent:2"] * 3)
        await embedded.api.delete(builtins.resource("nodes"), "c")
        await embedded.until("pods", lambda pods: len(pods) == 2)
