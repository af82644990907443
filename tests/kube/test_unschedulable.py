"""What schedulers say about pods that fit nowhere, in plain words."""

from __future__ import annotations

import pytest

from kvestigate.kube.unschedulable import in_plain_words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient memory. "
            "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.",
            "none of 5 nodes fits: 1 is cordoned; 4 have too little memory left",
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: gpu}. "
            "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is "
            "not helpful for scheduling.",
            "none of 2 nodes fits: 2 have the taint dedicated: gpu, not tolerated",
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint(s). no new claims",
            "none of 2 nodes fits: 2 have a taint that it does not tolerate",
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match "
            "Pod's node affinity/selector.",
            "none of 3 nodes fits: 1 has too few nvidia.com/gpu left; "
            "2 lack the labels that it asks for",
        ),
        ("no nodes available to schedule pods", "no node takes it: no nodes available to"),
        (
            '0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: x',
            "it mounts a claim that does not exist: data",
        ),
        (
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "a claim that it mounts has no volume yet",
        ),
        (
            "0/1 nodes are available: 1 something new.",
            "the only node does not fit: 1: something new",
        ),
        ("", "no scheduler has looked at it yet"),
    ],
)
def test_the_scheduler_in_plain_words(message: str, words: str) -> None:
    assert in_plain_words("Unschedulable", message).startswith(words)
    assert "preemption" not in in_plain_words("Unschedulable", message)


def test_a_gate_is_named() -> None:
    assert "scheduling gate" in in_plain_words("SchedulingGated", "")
