"""As whom containers run, and whose their files are, on each host that runs real processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kvestigate.client.api import PODS, Api, PatchType
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.volumes.sources import CLAIMS, CONFIG_MAPS, PERSISTENT_VOLUMES
from tests.cluster.node.conftest import (
    AS_ROOT,
    Object,
    ended,
    in_phase,
    logs,
    lone_agent,
    pod,
    shell,
    state_of,
    told,
    until,
)


def is_waiting_for(reason: str) -> Callable[[Object], bool]:
    return lambda found: state_of(found).get("waiting", {}).get("reason") == reason


def claim(name: str) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": ""}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def disk(name: str, path: str, claim: str) -> Object:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["here"]}]}]
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": claim},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "local": {"path": path},
    }
    return {"metadata": {"name": name}, "spec": spec}


async def claimed_disk(api: Api) -> Object:
    """A volume of a pod: a claim, and a directory of the node that is bound to it."""
    await api.create(CLAIMS, claim("c"))
    await api.create(PERSISTENT_VOLUMES, disk("d", "/var/tmp/disk", "c"))
    await api.patch(CLAIMS, "c", {"spec": {"volumeName": "d"}}, PatchType.MERGE)
    await api.patch(
        CLAIMS, "c", {"status": {"phase": "Bound"}}, PatchType.MERGE, subresource="status"
    )
    return {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}


@AS_ROOT
async def test_users_and_groups(api: Api, agent: Agent) -> None:
    outer = {"runAsUser": 1001, "runAsGroup": 2001, "supplementalGroups": [4001], "fsGroup": 3001}
    done = await ended(
        api,
        shell("id -u; id -g; id -G"),
        shell("id -u", name="own", securityContext={"runAsUser": 7}),
        securityContext=outer,
    )
    assert done["status"]["phase"] == "Succeeded"
    assert await logs(agent, "p") == "1001\n2001\n2001 3001 4001\n"
    assert await logs(agent, "p", "own") == "7\n"


@AS_ROOT
async def test_users_have_their_volumes(api: Api, agent: Agent) -> None:
    main = shell(
        "echo mine >/vol/file && cat /vol/file /config/k; pwd >/dev/null && stat -c %u /vol/file",
        volumeMounts=[{"name": "v", "mountPath": "/vol"}, {"name": "c", "mountPath": "/config"}],
    )
    await api.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"k": "v\n"}})
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}]
    await ended(api, main, volumes=volumes, securityContext={"runAsUser": 1001})
    assert await logs(agent, "p") == "mine\nv\n1001\n"


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@AS_ROOT
async def test_where_nobody_else_may_enter_one_user_runs_everything(api: Api, closed: Path) -> None:
    host = DirectoryHost(closed / "here", now=time.time)
    async with lone_agent(api, host, NodeConfig("here")) as agent:
        await ended(api, shell("id -u"), securityContext={"runAsUser": 1001})
        assert await logs(agent, "p") == "0\n"
        assert "all containers run as the same user" in host.facts().limits
    assert await told(
        api, "NotEnforced", "runAsUser not enforced: all containers run as the same user"
    )


@AS_ROOT
async def test_root_is_in_other_groups_too(api: Api, agent: Agent) -> None:
    await ended(api, shell("id -u; id -G"), securityContext={"supplementalGroups": [4001]})
    assert await logs(agent, "p") == "0\n0 4001\n"


@pytest.mark.parametrize(
    ("outer", "own", "why"),
    [
        ({"runAsNonRoot": True}, {}, "container has runAsNonRoot and image will run as root"),
        ({}, {"runAsNonRoot": True}, "container has runAsNonRoot and image will run as root"),
        (
            {"runAsNonRoot": True, "runAsUser": 1000},
            {"runAsUser": 0},
            "container's runAsUser breaks non-root policy",
        ),
    ],
)
async def test_a_root_that_the_spec_forbids(
    api: Api, agent: Agent, outer: Object, own: Object, why: str
) -> None:
    main = shell("exit 0", securityContext=own)
    made = await api.create(PODS, pod("p", main, securityContext=outer))
    found = await until(api, "p", is_waiting_for("CreateContainerConfigError"))
    assert found["status"]["phase"] == "Pending"
    where = f"p_default({made['metadata']['uid']})"
    assert state_of(found)["waiting"]["message"] == f'{why} (pod: "{where}", container: main)'


async def test_nobody_minds_a_user_that_is_not_root(api: Api, agent: Agent) -> None:
    own = {"runAsNonRoot": True, "runAsUser": 1000}
    done = await ended(api, shell("exit 0", securityContext=own))
    assert done["status"]["phase"] == "Succeeded"


@AS_ROOT
async def test_volumes_belong_to_the_pods_group(api: Api, agent: Agent) -> None:
    await api.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"k": "v"}})
    volumes = [
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "c", "defaultMode": 0o400}},
        {"name": "n", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory"}},
    ]
    mounts = [
        {"name": "e", "mountPath": "/vol/e"},
        {"name": "c", "mountPath": "/vol/c"},
        {"name": "n", "mountPath": "/vol/n", "subPath": "in"},
        {"name": "m", "mountPath": "/vol/m"},
    ]
    script = (
        "echo new >/vol/e/file; stat -c '%g %a' /vol/e; stat -c %g /vol/e/file; "
        "stat -c %g /vol/n; stat -c '%g %a' /vol/m; stat -L -c '%g %a' /vol/c/k; cat /vol/c/k"
    )
    await ended(
        api,
        shell(script, volumeMounts=mounts),
        volumes=volumes,
        securityContext={"fsGroup": 3001},
    )
    assert await logs(agent, "p") == "3001 2777\n3001\n3001\n3001 2777\n3001 440\nv"


@AS_ROOT
@pytest.mark.parametrize(("policy", "group"), [("Always", "3001"), ("OnRootMismatch", "0")])
async def test_a_volume_whose_root_is_right_may_be_left_alone(
    api: Api, agent: Agent, policy: str, group: str
) -> None:
    volumes = [await claimed_disk(api)]
    main = shell(
        "chgrp 0 /disk/file 2>/dev/null || echo new >/disk/file; chgrp 0 /disk/file",
        volumeMounts=[{"name": "d", "mountPath": "/disk"}],
    )
    spec = {"volumes": volumes, "restartPolicy": "Never"}
    context = {"fsGroup": 3001, "fsGroupChangePolicy": policy}
    await api.create(PODS, pod("first", main, securityContext=context, **spec))
    await until(api, "first", in_phase("Succeeded"))
    main = {**main, **shell("stat -c '%g %A' /disk; stat -c %g /disk/file")}
    await ended(api, main, securityContext=context, volumes=volumes)
    assert await logs(agent, "p") == f"3001 drwxrwsrwx\n{group}\n"


@AS_ROOT
async def test_a_volume_is_given_when_the_first_container_mounts_it(api: Api, agent: Agent) -> None:
    """Once: what the first one does with it stays as it is for the next."""
    mounts = [{"name": "d", "mountPath": "/disk"}]
    first = shell("stat -c %g /disk; chmod 700 /disk", name="first", volumeMounts=mounts)
    await ended(
        api,
        shell("stat -c '%g %a' /disk", volumeMounts=mounts),
        initContainers=[
            {"image": "i", "name": "other", "command": ["true"]},
            {"image": "i", **first},
        ],
        volumes=[await claimed_disk(api)],
        securityContext={"fsGroup": 3001},
    )
    assert await logs(agent, "p", "first") == "3001\n"
    assert await logs(agent, "p") == "3001 2700\n"


async def test_a_root_that_cannot_be_written_to(api: Api, agent: Agent) -> None:
    main = shell(
        "echo no >/var/tmp/no || echo no >/run/no || echo yes >/vol/yes && cat /vol/yes; "
        "echo words >/dev/termination-log; echo shm >/dev/shm/x && cat /dev/shm/x",
        securityContext={"readOnlyRootFilesystem": True},
        volumeMounts=[{"name": "e", "mountPath": "/vol"}],
        workingDir="/srv/new",
    )
    done = await ended(api, main, volumes=[{"name": "e", "emptyDir": {}}])
    assert state_of(done)["terminated"]["message"] == "words\n"
    said = (await logs(agent, "p")).splitlines()
    if isinstance(agent.host, DirectoryHost):
        assert "readOnlyRootFilesystem" in await told(api, "NotEnforced")
    else:
        assert [line for line in said if "Read-only" not in line] == ["yes", "shm"]
