"""What the scheduler says about a pod that fits nowhere, in plain words. Pure."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^0/(\d+) nodes are available: (.*?)\.?(?: preemption:.*)?$", re.DOTALL)
_PART = re.compile(r"^(\d+) (.*)$", re.DOTALL)

# What the scheduler's plugins say -> what it means for a person. The first that matches counts.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (r"Insufficient (cpu)", "{n} have too little CPU left"),
    (r"Insufficient (memory)", "{n} have too little memory left"),
    (r"Insufficient (\S*gpu\S*|\S*/mig-\S*)", "{n} have too few {what} left"),
    (r"Insufficient (\S+)", "{n} have too little {what} left"),
    (r"Too many pods", "{n} run as many pods as allowed"),
    (r"node\(s\) were unschedulable", "{n} are cordoned"),
    (r"node\(s\) had untolerated taint \{(.*)\}", "{n} have the taint {what}, not tolerated"),
    (r"node\(s\) had untolerated taint", "{n} have a taint that it does not tolerate"),
    (
        r"node\(s\) didn't match Pod's node affinity/selector",
        "{n} lack the labels that it asks for",
    ),
    (
        r"node\(s\) didn't match pod anti-affinity rules",
        "{n} run a pod that it must stay away from",
    ),
    (r"node\(s\) didn't match pod affinity rules", "{n} run no pod that it must be near"),
    (
        r"node\(s\) didn't match pod topology spread constraints",
        "on {n} its replicas would be spread too unevenly",
    ),
    (r"node\(s\) didn't have free ports", "{n} have its host port in use"),
    (r"node\(s\) had volume node affinity conflict", "{n} cannot reach its volume"),
    (r"node\(s\) didn't find available persistent volumes", "{n} find no volume for its claim"),
    (r"node\(s\) exceed max volume count", "{n} have as many volumes attached as allowed"),
)

_SINGULAR = {"are": "is", "find": "finds", "have": "has", "lack": "lacks", "run": "runs"}


def in_plain_words(reason: str, message: str) -> str:
    """The sentence for a `PodScheduled` condition that is false."""
    if reason == "SchedulingGated":
        return "a scheduling gate holds it back: whoever set it must remove it"
    if "persistentvolumeclaim" in message and "not found" in message:
        return f"it mounts a claim that does not exist: {_first_quoted(message)}"
    if "unbound immediate PersistentVolumeClaims" in message:
        return "a claim that it mounts has no volume yet"
    head = _HEAD.match(message.strip())
    if head is None:
        return f"no node takes it: {message}" if message else "no scheduler has looked at it yet"
    total, parts = head.groups()
    if total == "0":
        return "the cluster has no nodes"
    said = "; ".join(_meaning(part) for part in re.split(r"[,.] (?=\d)", parts))
    return (
        f"{'the only node does not fit' if total == '1' else f'none of {total} nodes fits'}: {said}"
    )


def _meaning(part: str) -> str:
    part = part.partition(". ")[0].strip().rstrip(".")
    match = _PART.match(part)
    if match is None:
        return part
    count, said = match.groups()
    for pattern, meaning in _MEANINGS:
        found = re.match(pattern, said)
        if found:
            what = found.group(1) if found.groups() else ""
            return _agreeing(meaning.format(n=count, what=what.strip().rstrip(": ")))
    return f"{count}: {said}"


def _agreeing(said: str) -> str:
    """`1 has too little CPU left`"""
    number, verb, rest = said.split(" ", 2)
    return f"1 {_SINGULAR.get(verb, verb)} {rest}" if number == "1" else said


def _first_quoted(message: str) -> str:
    found = re.search(r'"([^"]+)"', message)
    return found.group(1) if found else message
