"""Plans and outcomes, for people."""

from __future__ import annotations

import pytest

from kvestigate.app import Target, format_apply_results
from kvestigate.app.model import Action, AppOutcome, Step
from kvestigate.manifests.model import Change


def outcome(*steps: Step, applied: bool = False) -> AppOutcome:
    return AppOutcome(
        namespace="default",
        name="web",
        target=Target.K8S,
        reasons=("target: k8s",),
        caveats=("workspace.sources are not copied",),
        spec_hash="0123456789abcdef",
        applied=applied,
        steps=steps,
    )


@pytest.mark.parametrize(
    ("actions", "applied", "heading"),
    [
        ([], False, "nothing exists"),
        (["unchanged", "unchanged"], False, "nothing to do"),
        (["unchanged", "unchanged"], True, "nothing to do"),
        (["create", "change", "unchanged"], False, "would do: 1 create, 1 change, 1 unchanged"),
        (["create", "create", "delete"], True, "2 created, 1 deleted"),
        (["create", "conflict"], False, "nothing was done, because a step would fail"),
        (["create", "fail", "skip"], True, "1 created, 1 failed, 1 not tried"),
        (["delete", "leave"], True, "1 deleted, 1 going"),
        (["sync", "stop", "start"], True, "1 synced, 1 started, 1 stopped"),
    ],
)
def test_the_first_line_says_it_all(actions: list[str], applied: bool, heading: str) -> None:
    found = outcome(*(Step(Action(it), "Job web") for it in actions), applied=applied)
    first = format_apply_results(found).splitlines()[0]
    assert first.startswith("App default/web")
    assert first.endswith(heading)


def test_all_of_a_plan() -> None:
    found = outcome(
        Step(Action.CHANGE, "Job web", changes=(Change("spec.replicas", "1", None),)),
        Step(Action.CREATE, "workspace web on a", "with 1 free GPU", script=("mkdir -p /opt/web",)),
    )
    assert format_apply_results(found) == (
        "App default/web, would do: 1 create, 1 change\n"
        "\n"
        "target:      k8s\n"
        "because:     target: k8s\n"
        "note:        workspace.sources are not copied\n"
        "spec hash:   0123456789ab\n"
        "\n"
        "WHAT                 OUTCOME   REASON\n"
        "Job web              change    -\n"
        "workspace web on a   create    with 1 free GPU\n"
        "\n"
        "Changes\n"
        "\n"
        "WHAT      FIELD           BEFORE   AFTER\n"
        "Job web   spec.replicas   1        -\n"
        "\n"
        "workspace web on a, on the host:\n"
        "\n"
        "mkdir -p /opt/web\n"
    )


def test_what_was_done_on_a_host_is_not_told_again() -> None:
    done = outcome(Step(Action.CREATE, "workspace web on a", script=("mkdir x",)), applied=True)
    assert "mkdir" not in format_apply_results(done)
