"""What is recorded of Apps, and how an App is held against it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kvestigate.app import (
    AppPhase,
    AppSpec,
    DriftStatus,
    RecordedStatus,
    Target,
    diff_app,
    read_status,
    spec_hash,
    status_path_for,
    write_status,
)
from kvestigate.app.present import discreet, list_blocks, status_blocks
from kvestigate.app.status import recorded_statuses, status_on
from kvestigate.errors import InputError
from kvestigate.render.plain import to_text
from tests.app.conftest import FEW, SPECS, app


def recorded(spec: AppSpec, phase: AppPhase = AppPhase.UP, **fields: Any) -> RecordedStatus:
    return RecordedStatus(
        namespace=spec.metadata.namespace,
        name=spec.metadata.name,
        target=Target.K8S,
        spec_hash=spec_hash(spec),
        phase=phase,
        recorded_at="2026-10-05T12:34:56Z",
        app=spec,
        **{"server": "https://127.0.0.1:6443", **fields},
    )


# The directory is one for all examples: each overwrites what it finds.
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SPECS)
def test_what_is_written_is_read_again(spec: AppSpec) -> None:
    status = recorded(spec)
    assert read_status(write_status(status)) == status


def test_it_is_for_the_owners_eyes(status_directory: Path) -> None:
    path = write_status(recorded(app()))
    assert path == status_path_for("default", "web") == status_directory / "default" / "web.json"
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_recorded() -> None:
    assert read_status(status_path_for("default", "web")) is None
    assert recorded_statuses() == []


def test_all_that_is_recorded() -> None:
    for namespace, name in (("b", "x"), ("a", "y"), ("a", "x")):
        write_status(recorded(app(metadata={"name": name, "namespace": namespace})))
    found = [(it.namespace, it.name) for it in recorded_statuses()]
    assert found == [("a", "x"), ("a", "y"), ("b", "x")]


def test_each_cluster_has_a_record_of_its_own() -> None:
    east, west = (f"https://{it}.example:6443" for it in ("east", "west"))
    first, second = recorded(app(), server=east), recorded(app(), AppPhase.DOWN, server=west)
    write_status(first)
    write_status(second)
    assert status_on("default", "web", east) == first
    assert status_on("default", "web", west) == second
    assert status_on("default", "web", "https://north.example") is None
    assert read_status(status_path_for("default", "web")) == second
    assert {it.server for it in recorded_statuses()} == {east, west}
    assert read_status(status_path_for("default", "web", east)) == first


def test_a_record_from_before_there_was_one_for_each_cluster_counts() -> None:
    status = recorded(app())
    write_status(status)
    status_path_for("default", "web", status.server).unlink()
    assert status_on("default", "web", status.server) == status
    assert recorded_statuses() == [status]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"namespace": 1}'])
def test_a_broken_record_is_named(text: str) -> None:
    path = write_status(recorded(app()))
    path.write_text(text)
    with pytest.raises(InputError, match="not the status of an App") as caught:
        read_status(path)
    assert (caught.value.where, caught.value.hint) == (str(path), "remove the file")


@pytest.mark.parametrize(("namespace", "name"), [("..", "x"), ("a", "../x"), ("", "x")])
def test_names_do_not_lead_out_of_the_directory(namespace: str, name: str) -> None:
    with pytest.raises(InputError):
        status_path_for(namespace, name)


def test_a_directory_that_cannot_be_written(status_directory: Path) -> None:
    status_directory.write_text("a file")
    with pytest.raises(InputError, match="the App's status cannot be kept"):
        write_status(recorded(app()))


@pytest.mark.parametrize(
    ("phase", "changed", "drift"),
    [
        (AppPhase.UP, False, DriftStatus.IN_SYNC),
        (AppPhase.UP, True, DriftStatus.DRIFTED),
        (AppPhase.FAILED, False, DriftStatus.UNFINISHED),
        (AppPhase.FAILED, True, DriftStatus.DRIFTED),
        (AppPhase.APPLYING, False, DriftStatus.UNFINISHED),
        (AppPhase.DOWN, False, DriftStatus.NEVER_APPLIED),
        (AppPhase.DOWN, True, DriftStatus.NEVER_APPLIED),
    ],
)
def test_drift(phase: AppPhase, changed: bool, drift: DriftStatus) -> None:
    spec = app()
    path = write_status(recorded(spec, phase))
    found = diff_app(replace(spec, command=("other",)) if changed else spec, path)
    assert (found.status, found.phase) == (drift, phase)
    assert (found.spec_hash == found.recorded_hash) is not changed


def test_drift_of_what_was_never_applied() -> None:
    found = diff_app(app(), status_path_for("default", "web"))
    assert (found.status, found.recorded_hash) == (DriftStatus.NEVER_APPLIED, "")


def test_what_drifted_is_told_field_by_field() -> None:
    path = write_status(recorded(app(env={"A": "1", "API_TOKEN": "old"}, k8s={"replicas": 2})))
    new = app(env={"A": "2", "API_TOKEN": "new"}, k8s={"replicas": 3})
    assert [(it.path, it.before, it.after) for it in diff_app(new, path).changes] == [
        ("env.A", "1", "2"),
        ("env.API_TOKEN", "(hidden)", "(hidden)"),
        ("k8s.replicas", "2", "3"),
    ]


@FEW
@given(SPECS)
def test_the_digest_does_not_depend_on_the_order(spec: AppSpec) -> None:
    turned = replace(
        spec,
        env=dict(reversed(list(spec.env.items()))),
        metadata=replace(spec.metadata, labels=dict(reversed(list(spec.metadata.labels.items())))),
    )
    assert spec_hash(turned) == spec_hash(spec)


def test_the_digest_tells_apps_apart() -> None:
    apps = [
        app(),
        app(metadata={"name": "other"}),
        app(env={"A": "1"}),
        app(command=["a", "b"]),
        app(command=["b", "a"]),
        app(shared_config_files=[{"name": "a", "content": "x"}]),
        app(shared_config_files=[{"name": "a", "content": "y"}]),
    ]
    assert len({spec_hash(it) for it in apps}) == len(apps)
    assert all(len(spec_hash(it)) == 64 for it in apps)


def test_a_default_that_is_written_out_is_no_difference() -> None:
    assert spec_hash(app(lifecycle="service", target="auto")) == spec_hash(app())


def test_for_people() -> None:
    status = recorded(app(), AppPhase.FAILED, message="the server said no", context="prod")
    shown = to_text(status_blocks(status))
    for words in ("default/web", "failed", "the server said no", "6443 (prod)"):
        assert words in shown
    assert "default     web    failed" in to_text(list_blocks([status]))
    assert to_text(list_blocks([])) == "no App was brought up from here\n"


def test_secrets_are_not_shown() -> None:
    status = recorded(app(env={"API_TOKEN": "hush", "MODE": "fast"}))
    assert discreet(status).app.env == {"API_TOKEN": "(hidden)", "MODE": "fast"}
    kept = json.loads(write_status(status).read_text())
    assert kept["app"]["env"]["API_TOKEN"] == "hush"
