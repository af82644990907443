"""What the scheduler says about a pod that fits nowhere, in plain words. Pure.

The condition `PodScheduled` and the event `FailedScheduling` have the same message: a count of
nodes for each reason of a plugin, or one reason for all nodes, and then what preemption could do.
The words are those of kube-scheduler 1.2x to 1.3x; the embedded scheduler uses the newest ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(
    r"^0/(\d+) nodes are available:\s*(.*?)\.?"
    r"(?:\s*(?:no new claims to deallocate, )?preemption:(.*))?$",
    re.DOTALL,
)
_PART = re.compile(r"^(\d+) (.*)$", re.DOTALL)

# What the scheduler's plugins say -> what that means of the nodes. The first that matches counts.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (r"Insufficient cpu", "have too little free CPU"),
    (r"Insufficient memory", "have too little free memory"),
    (r"Insufficient ephemeral-storage", "have too little free ephemeral-storage"),
    (r"Insufficient (\S*gpu\S*|\S*/mig-\S*)", "have too few free {what}"),
    (r"Insufficient (\S+)", "have too little free {what}"),
    (r"Too many pods", "run the maximum number of pods"),
    (r"node\(s\) were unschedulable", "are cordoned"),
    (
        r"node\(s\) had (?:untolerated )?taint \{(.*?)\}",
        "have the taint {what}, which the pod does not tolerate",
    ),
    (r"node\(s\) had (?:untolerated )?taint", "have a taint that the pod does not tolerate"),
    (
        r"node\(s\) didn't match (?:Pod's node affinity|node selector)",
        "do not match the pod's node selector or node affinity",
    ),
    (
        r"node\(s\) didn't match scheduler-enforced node affinity",
        "do not match the node affinity that the scheduler adds to every pod",
    ),
    (
        r"node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]",
        "do not match the pod's node selector or node affinity",
    ),
    (r"node\(s\) didn't satisfy plugin\(s\) \[(.*?)\]", "are excluded by the plugin {what}"),
    (r"node\(s\) didn't match the requested node name", "do not have the name in spec.nodeName"),
    (
        r"node\(s\) didn't match pod affinity/anti-affinity",
        "do not fit the pod's affinity or anti-affinity to other pods",
    ),
    (
        r"node\(s\) didn't match pod anti-affinity rules",
        "run a pod that the pod's anti-affinity excludes",
    ),
    (
        r"node\(s\) didn't satisfy existing pods anti-affinity rules",
        "run a pod whose anti-affinity excludes this pod",
    ),
    (
        r"node\(s\) didn't match pod affinity rules",
        "run no pod that the pod's affinity requires",
    ),
    (
        r"node\(s\) didn't match pod topology spread constraints \(missing required label\)",
        "have no label for the topology key of the pod's topology spread constraints",
    ),
    (
        r"node\(s\) didn't match pod topology spread constraints",
        "would break the pod's topology spread constraints",
    ),
    (r"node\(s\) didn't have free ports", "have the pod's host port in use"),
    (
        r"node\(s\) (?:had volume node affinity conflict|didn't match PersistentVolume's node)",
        "cannot reach the pod's volume (volume node affinity)",
    ),
    (r"node\(s\) had no available volume zone", "are in another zone than the pod's volume"),
    (
        r"node\(s\) didn't find available persistent volumes",
        "have no volume for the pod's PersistentVolumeClaim",
    ),
    (
        r"node\(s\) did not have enough free storage",
        "have too little free storage for the pod's volume",
    ),
    (
        r"node\(s\) unavailable due to one or more pvc\(s\) bound to non-existent pv\(s\)",
        "cannot be used: a PersistentVolumeClaim of the pod is bound to a PersistentVolume that "
        "does not exist",
    ),
    (
        r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod",
        "cannot be used: another pod uses a ReadWriteOncePod PersistentVolumeClaim of this pod",
    ),
    (r"node\(s\) had no available disk", "have the pod's disk in use by another pod"),
    (
        r"node\(s\) exceed max volume count",
        "have the maximum number of volumes attached (max volume count)",
    ),
    (
        r"(?:cannot allocate all claims|node\(s\) .*resourceclaim|resourceclaim not available)",
        "have no free device for the pod's ResourceClaims",
    ),
)

# What the scheduler says of all nodes at once, without a count.
_EVERYWHERE: tuple[tuple[str, str], ...] = (
    (
        r'persistentvolumeclaim "([^"]+)" not found',
        "the pod mounts a PersistentVolumeClaim that does not exist: {what}",
    ),
    (
        r'persistentvolumeclaim "([^"]+)" is being deleted',
        "the pod mounts a PersistentVolumeClaim that is being deleted: {what}",
    ),
    (
        r'persistentvolumeclaim "([^"]+)" bound to non-existent persistentvolume',
        "the pod mounts a PersistentVolumeClaim whose PersistentVolume does not exist: {what}",
    ),
    (
        r'waiting for ephemeral volume controller to create the persistentvolumeclaim "([^"]+)"',
        "the PersistentVolumeClaim of the pod's ephemeral volume has not been created: {what}",
    ),
    (
        r"unbound immediate PersistentVolumeClaims",
        "a PersistentVolumeClaim that the pod mounts is not bound to a volume yet",
    ),
    (
        r'waiting for dynamic resource controller to create the resourceclaim "?([^". ]+)',
        "the ResourceClaim {what} of the pod has not been created",
    ),
    (
        r'resourceclaim(?:\.resource\.k8s\.io)? "([^"]+)" not found',
        "the pod uses a ResourceClaim that does not exist: {what}",
    ),
    (
        r"device class (\S+) does not exist",
        "the pod's ResourceClaim names a DeviceClass that does not exist: {what}",
    ),
    (
        r"pod affinity terms conflict",
        "the terms of the pod's node affinity contradict each other: no node can match them",
    ),
)
_LONGEST = 4000
"""Characters of a message that are read: anybody who may write a status may write more."""
_NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never"

_SINGULAR = {"are": "is", "do": "does", "have": "has", "run": "runs"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A message of the scheduler, taken apart."""

    total: int
    """How many nodes there are."""
    reasons: tuple[tuple[int, str], ...]
    """How many nodes a reason holds for, and the reason in the scheduler's words; 0 for all."""
    preemption: str = ""
    """What the scheduler says of preemption; empty if it says nothing."""


def verdict(message: str) -> Verdict | None:
    """None for what is not a count of nodes."""
    head = _HEAD.match(message[:_LONGEST].strip())
    if head is None:
        return None
    parts = [part for part in re.split(r"[,.] (?=\d)", head[2]) if part.strip()]
    return Verdict(int(head[1]), tuple(map(_reason, parts)), (head[3] or "").strip())


def _reason(part: str) -> tuple[int, str]:
    """`4 Insufficient memory` -> 4, `Insufficient memory`"""
    part = part.partition(". ")[0].strip().rstrip(".")
    counted = _PART.match(part)
    return (int(counted[1]), counted[2]) if counted else (0, part)


def in_plain_words(reason: str, message: str) -> str:
    """The sentence for a `PodScheduled` condition that is false."""
    if reason == "SchedulingGated":
        return "a scheduling gate holds the pod back; whoever set the gate must remove it"
    for pattern, meaning in _EVERYWHERE:
        match = re.search(pattern, message[:_LONGEST])
        if match:
            return meaning.format(what=match[1] if match.groups() else "")
    if not message:
        return "no scheduler has tried to place the pod yet"
    if reason == "SchedulerError":
        return f"the scheduler failed on the pod: {message}"
    return _of_the_nodes(message)


def _of_the_nodes(message: str) -> str:
    parsed = verdict(message)
    if parsed is None or not parsed.total:
        empty = parsed is not None or message.startswith("no nodes available")
        return "the cluster has no nodes" if empty else f"no node fits: {message}"
    words = "; ".join(_meaning(count, words, parsed.total) for count, words in parsed.reasons)
    never = ""
    if _NEVER_PREEMPTS in parsed.preemption:
        never = ". The pod's priority class forbids to preempt other pods (preemptionPolicy: Never)"
    return f"no node fits: {words}{never}" if words else f"no node fits{never}"


def about_node(reason: str) -> str:
    """What one reason of the scheduler says of one node: `has too little free CPU`."""
    for pattern, meaning in _MEANINGS:
        if match := re.match(pattern, reason):
            what = match[1].strip().rstrip(": ") if match.groups() else ""
            return _agreeing(meaning.format(what=what), 1)
    return f"does not fit: {reason}"


def _meaning(count: int, words: str, total: int) -> str:
    """What one reason of the scheduler says."""
    if not count:
        return words
    for pattern, meaning in _MEANINGS:
        match = re.match(pattern, words)
        if match:
            what = match[1].strip().rstrip(": ") if match.groups() else ""
            return f"{_nodes(count, total)} {_agreeing(meaning.format(what=what), count)}"
    return f"{_nodes(count, total)}: {words}"


def _nodes(count: int, total: int) -> str:
    if total == 1:
        return "the only node"
    return f"all {total} nodes" if count == total else f"{count} of {total} nodes"


def _agreeing(predicate: str, count: int) -> str:
    """`has too little free CPU` for one node."""
    verb, rest = predicate.split(" ", 1)
    return f"{_SINGULAR.get(verb, verb)} {rest}" if count == 1 else predicate
