"""What to tell a pod that fits nowhere, and what to do for it, in kube-scheduler's words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kvestigate.cluster.scheduler.decision import Decider, NoFit
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.preemption import Preemption, preempt
from kvestigate.cluster.scheduler.state import ClusterState


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pod has to wait."""

    message: str
    nominated: str | None
    """Where room is made for it, empty for nowhere; None leaves that as it was."""
    preemption: Preemption | None = None


def refuse(
    pod: PodFacts, found: NoFit, state: ClusterState, decider: Decider, random: Random
) -> Refusal:
    message = str(found)
    if not found.total:
        return Refusal(message, "")
    if found.everywhere is not None:
        # Evictions cannot help then. What kube-scheduler adds is that it kept no state of
        # devices: of no use, but those who search for its words should find them.
        return Refusal(f"{message} not found", "")
    outcome = preempt(pod, found, state, decider, random)
    if isinstance(outcome, Preemption):
        return Refusal(message, outcome.node, outcome)
    # The first part is what kube-scheduler's dynamic resources always say here.
    message += f" no new claims to deallocate, preemption: {outcome.why}"
    return Refusal(message, None if outcome.keeps_nomination else "")
