"""What the scheduler says about a pod that fits nowhere, in plain words. Pure."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^0/(\d+) nodes are available: (.*?)\.?(?: preemption:.*)?$", re.DOTALL)
_PART = re.compile(r"^(\d+) (.*)$", re.DOTALL)

# What the scheduler's plugins say -> what that means of the nodes. The first that matches counts.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (r"Insufficient cpu", "have too little free CPU"),
    (r"Insufficient memory", "have too little free memory"),
    (r"Insufficient (\S*gpu\S*|\S*/mig-\S*)", "have too few free {what}"),
    (r"Insufficient (\S+)", "have too little free {what}"),
    (r"Too many pods", "run the maximum number of pods"),
    (r"node\(s\) were unschedulable", "are cordoned"),
    (
        r"node\(s\) had untolerated taint \{(.*)\}",
        "have the taint {what}, which the pod does not tolerate",
    ),
    (r"node\(s\) had untolerated taint", "have a taint that the pod does not tolerate"),
    (
        r"node\(s\) didn't match Pod's node affinity/selector",
        "do not match the pod's node selector or node affinity",
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
        r"node\(s\) didn't match pod topology spread constraints",
        "would break the pod's topology spread constraints",
    ),
    (r"node\(s\) didn't have free ports", "have the pod's host port in use"),
    (
        r"node\(s\) (?:had volume node affinity conflict|didn't match PersistentVolume's node)",
        "cannot reach the pod's volume",
    ),
    (
        r"node\(s\) didn't find available persistent volumes",
        "have no volume for the pod's PersistentVolumeClaim",
    ),
    (r"node\(s\) exceed max volume count", "have the maximum number of volumes attached"),
)

_SINGULAR = {"are": "is", "do": "does", "have": "has", "run": "runs"}


def in_plain_words(reason: str, message: str) -> str:
    """The sentence for a `PodScheduled` condition that is false."""
    if reason == "SchedulingGated":
        return "a scheduling gate holds the pod back; whoever set the gate must remove it"
    if "persistentvolumeclaim" in message and "not found" in message:
        return f"the pod mounts a PersistentVolumeClaim that does not exist: {_quoted(message)}"
    if "unbound immediate PersistentVolumeClaims" in message:
        return "a PersistentVolumeClaim that the pod mounts is not bound to a volume yet"
    if not message:
        return "no scheduler has tried to place the pod yet"
    head = _HEAD.match(message.strip())
    if head is None or head[1] == "0":
        empty = head is not None or message.startswith("no nodes available")
        return "the cluster has no nodes" if empty else f"no node fits: {message}"
    total, parts = int(head[1]), re.split(r"[,.] (?=\d)", head[2])
    return f"no node fits: {'; '.join(_meaning(part, total) for part in parts)}"


def about_node(reason: str) -> str:
    """What one reason of the scheduler says of one node: `has too little free CPU`."""
    for pattern, meaning in _MEANINGS:
        if match := re.match(pattern, reason):
            what = match[1].strip().rstrip(": ") if match.groups() else ""
            return _agreeing(meaning.format(what=what), 1)
    return f"does not fit: {reason}"


def _meaning(part: str, total: int) -> str:
    """What one part of the scheduler's message, `4 Insufficient memory`, says."""
    part = part.partition(". ")[0].strip().rstrip(".")
    counted = _PART.match(part)
    if counted is None:
        return part
    count, words = int(counted[1]), counted[2]
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


def _quoted(message: str) -> str:
    match = re.search(r'"([^"]+)"', message)
    return match[1] if match else message
