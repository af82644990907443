"""`kvestigate plane snapshot|fork|checkpoint|restore|diff|events|step`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvestigate_client import PlaneClient
from kvestigate_client.failures import NotFound
from tests.cli.conftest import MEANT, Invoke, Served

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "stringData": {"password": "hunter2"},
}


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def client(served: Served) -> Iterator[PlaneClient]:
    with PlaneClient.from_kubeconfig(served.data / "admin.kubeconfig") as made:
        yield made
        for plane in made.planes():
            if plane != "root":
                with contextlib.suppress(NotFound):  # its fleet may be on the way to delete it
                    made.delete(plane)


@pytest.fixture
def data(served: Served) -> tuple[str, str]:
    return "--data", str(served.data)


def test_a_snapshot_counts_and_shows(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str]
) -> None:
    client.create("alpha").apply(config_map("a", k="v"), SECRET)

    table = invoke("plane", "snapshot", "alpha", *data)
    shown = invoke("plane", "snapshot", "alpha", *data, "--resource", "configmaps", "-o", "json")
    secret = invoke("plane", "snapshot", "alpha", *data, "--resource", "secrets", "-o", "json")

    assert (table.code, "configmaps" in table.out) == (0, True)
    (maps,) = json.loads(shown.out)["resources"]
    assert maps["items"][0]["data"] == {"k": "v"}
    (secrets,) = json.loads(secret.out)["resources"]
    assert secrets["items"][0]["data"] == {"password": "<hidden>"}


def test_a_plane_is_forked_kept_changed_and_put_back(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str]
) -> None:
    plane = client.create("alpha")
    plane.apply(config_map("a", k="1"))

    kept = invoke("plane", "checkpoint", "alpha", "--name", "start", *data, *MEANT)
    forked = invoke("plane", "fork", "alpha", "--name", "copy", "--count", "2", *data, *MEANT)
    plane.apply(config_map("a", k="2"), SECRET)
    differs = invoke("plane", "diff", "alpha", "checkpoint:start", *data)
    in_full = invoke("plane", "diff", "alpha", "plane:copy-0000", *data, "-o", "json")
    back = invoke("plane", "restore", "alpha", "--checkpoint", "start", *data, *MEANT)
    same = invoke("plane", "diff", "alpha", "plane:copy-0000", *data)

    assert (kept.code, forked.code, differs.code, back.code) == (0, 0, 0, 0)
    assert "copy-0001" in forked.out
    assert ("data.k" in differs.out, "default/s" in differs.out) == (True, True)
    assert "hunter2" not in in_full.out
    assert json.loads(in_full.out)["summary"] == {"added": 1, "modified": 1, "deleted": 0}
    assert same.out == "no differences\n"


def test_the_changes_are_told_with_their_actors(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str]
) -> None:
    client.create("alpha").apply(config_map("a"), SECRET)

    told = invoke("plane", "events", "alpha", *data)
    full = invoke("plane", "events", "alpha", "--objects", "-o", "json", *data)

    assert told.code == 0
    assert [word in told.out for word in ("kvestigate-admin", "added", "default/a")] == [True] * 3
    first, second = json.loads(full.out)["events"]
    assert first["object"]["metadata"]["name"] == "a"
    assert second["object"]["data"] == {"password": "<hidden>"}


def test_another_chance_is_taken_from_where_a_plane_was_put_back_to(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str]
) -> None:
    plane = client.create("alpha", clock="virtual", seed=7)
    plane.checkpoint("start")
    uids = []
    for seed in ((), (), ("--seed", "8")):
        back = invoke("plane", "restore", "alpha", "--checkpoint", "start", *seed, *data, *MEANT)
        assert back.code == 0
        plane.apply(config_map("a"))
        found = plane.snapshot(["configmaps"]).find("configmaps", "a")
        assert found is not None
        uids.append(found["metadata"]["uid"])
    assert [uids[0] == other for other in uids[1:]] == [True, False]


def test_virtual_time_passes_in_steps(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str]
) -> None:
    made = invoke("plane", "create", "alpha", "--clock", "virtual", "--seed", "7", *data, *MEANT)

    stepped = invoke("plane", "step", "alpha", "--seconds", "90", "-o", "json", *data, *MEANT)

    assert (made.code, stepped.code) == (0, 0)
    assert json.loads(stepped.out)["time"].startswith("2026-01-01T00:01:30")


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("snapshot", "none"), 5, 'clusters "none" not found\nhint: `kvestigate plane list`'),
        (("snapshot", "root", "--resource", "toys"), 2, 'no resource "toys"'),
        (("restore", "root", *MEANT), 2, "give either --checkpoint or --revision"),
        (("restore", "root", "--checkpoint", "none", *MEANT), 5, 'checkpoints "none" not found'),
        (("diff", "root", "yesterday"), 2, '"yesterday" is no point of a plane'),
        (("step", "root", *MEANT), 2, "runs on the wall clock"),
        (("fork", "root"), 0, "add --apply --i-understand-this-modifies-cluster"),
        (("checkpoint", "root"), 0, "nothing was changed"),
        (("step", "root"), 0, "nothing was changed"),
    ],
)
def test_what_cannot_be_done_is_said(
    invoke: Invoke, data: tuple[str, str], command: tuple[str, ...], code: int, message: str
) -> None:
    outcome = invoke("plane", *command, *data)

    assert (outcome.code, message in outcome.err) == (code, True)


def test_a_fleet_is_made_scaled_shown_and_deleted(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str], tmp_path: Path
) -> None:
    manifest = tmp_path / "map.yaml"
    manifest.write_text(json.dumps(config_map("seeded")))

    made = invoke(
        "fleet", "create", "crew", "--replicas", "3", "--file", str(manifest), *data, *MEANT
    )
    shown = invoke("fleet", "status", "crew", *data)
    seeded = client.plane("crew-0002").snapshot(["configmaps"]).items("configmaps")
    scaled = invoke("fleet", "scale", "crew", "--replicas", "1", *data, *MEANT)
    after = invoke("fleet", "status", "crew", "-o", "json", *data)
    deleted = invoke("fleet", "delete", "crew", *data, *MEANT)

    assert (made.code, shown.code, scaled.code, deleted.code) == (0, 0, 0, 0)
    assert "3 of 3" in made.out
    assert "1 of 1" in scaled.out
    assert "crew-0000 ... crew-0002" in made.out
    assert "PHASE" not in made.out
    assert "crew-0001   Ready" in shown.out
    assert [each["metadata"]["name"] for each in seeded] == ["seeded"]
    assert json.loads(after.out)["status"]["readyReplicas"] == 1
    assert deleted.out == "fleet crew is deleted\n"


def test_members_may_start_with_a_scenario(
    invoke: Invoke, client: PlaneClient, data: tuple[str, str]
) -> None:
    made = invoke("fleet", "create", "broken", "--scenario", "broken-app", *data, *MEANT)

    assert made.code == 0
    assert client.plane("broken-0000").snapshot().items("deployments")
    client.fleet("broken").delete()


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("status", "none"), 5, 'fleets.kplane.dev "none" not found'),
        (("create", "crew", "--file", "missing.yaml", *MEANT), 2, "missing.yaml: cannot be read"),
        (("create", "crew"), 0, "nothing was changed"),
        (("scale", "crew", "--replicas", "1"), 0, "nothing was changed"),
        (("delete", "crew"), 0, "nothing was changed"),
    ],
)
def test_what_cannot_be_done_with_a_fleet_is_said(
    invoke: Invoke, data: tuple[str, str], command: tuple[str, ...], code: int, message: str
) -> None:
    outcome = invoke("fleet", *command, *data)

    assert (outcome.code, message in outcome.err) == (code, True)
