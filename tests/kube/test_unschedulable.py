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
            "no node fits: 1 of 5 nodes is cordoned; 4 of 5 nodes have too little free memory",
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: gpu}. "
            "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is "
            "not helpful for scheduling.",
            "no node fits: all 2 nodes have the taint dedicated: gpu, which the pod does not "
            "tolerate",
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint(s). no new claims",
            "no node fits: all 2 nodes have a taint that the pod does not tolerate",
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match "
            "Pod's node affinity/selector.",
            "no node fits: 1 of 3 nodes has too few free nvidia.com/gpu; "
            "2 of 3 nodes do not match the pod's node selector or node affinity",
        ),
        ("no nodes available to schedule pods", "the cluster has no nodes"),
        (
            '0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: x',
            "the pod mounts a PersistentVolumeClaim that does not exist: data",
        ),
        (
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "a PersistentVolumeClaim that the pod mounts is not bound to a volume yet",
        ),
        (
            "0/1 nodes are available: 1 something new.",
            "no node fits: the only node: something new",
        ),
        (
            "0/3 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate, "
            "2 node(s) had volume node affinity conflict.",
            "no node fits: 1 of 3 nodes has the taint a: b, which the pod does not tolerate; "
            "2 of 3 nodes cannot reach the pod's volume (volume node affinity)",
        ),
        (
            "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints "
            "(missing required label).",
            "no node fits: all 2 nodes have no label for the topology key",
        ),
        (
            "0/4 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules, "
            "1 node(s) didn't have free ports for the requested pod ports, 2 Too many pods.",
            "no node fits: 1 of 4 nodes runs a pod whose anti-affinity excludes this pod; "
            "1 of 4 nodes has the pod's host port in use; "
            "2 of 4 nodes run the maximum number of pods",
        ),
        (
            "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable",
            "no node fits: all 3 nodes have no free device for the pod's ResourceClaims",
        ),
        (
            "0/3 nodes are available: waiting for dynamic resource controller to create the "
            'resourceclaim "gpu".',
            "the ResourceClaim gpu of the pod has not been created",
        ),
        (
            '0/3 nodes are available: persistentvolumeclaim "data" is being deleted.',
            "the pod mounts a PersistentVolumeClaim that is being deleted: data",
        ),
        (
            "0/3 nodes are available: pod affinity terms conflict.",
            "the terms of the pod's node affinity contradict each other",
        ),
        (
            "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to "
            "preemptionPolicy=Never.",
            "no node fits: all 2 nodes have too little free CPU. The pod's priority class forbids",
        ),
        (
            "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with "
            "ReadWriteOncePod access mode already in-use by another pod.",
            "no node fits: the only node cannot be used: another pod uses a ReadWriteOncePod",
        ),
        ("", "no scheduler has tried to place the pod yet"),
    ],
)
def test_the_scheduler_in_plain_words(message: str, words: str) -> None:
    assert in_plain_words("Unschedulable", message).startswith(words)
    assert "preemption:" not in in_plain_words("Unschedulable", message)


def test_a_gate_is_named() -> None:
    assert "scheduling gate" in in_plain_words("SchedulingGated", "")


def test_an_error_of_the_scheduler_is_quoted() -> None:
    assert "scheduler failed" in in_plain_words("SchedulerError", "binding rejected")
