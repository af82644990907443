"""Columns of Pods: the one word of STATUS says what people look for. Pure."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    Columns,
    column,
    condition,
    filled,
    since,
)

_COMPLETED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}
_LOST = "NodeLost"


def _gates(obj: Object) -> str:
    gates = obj["spec"].get("readinessGates") or ()
    passed = sum(condition(obj, gate["conditionType"]) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


def _conditions(obj: Object) -> list[dict[str, str]]:
    phase = (obj.get("status") or {}).get("phase", "")
    if phase not in _COMPLETED:
        return []
    message = _COMPLETED[phase]
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


class _Restarts:
    """How often containers were restarted, and when last."""

    def __init__(self) -> None:
        self.count = 0
        self.last = ""

    def add(self, container: Object) -> None:
        self.count += container.get("restartCount", 0)
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        # Timestamps of one form sort as text.
        self.last = max(self.last, ended or "")


class _Sight:
    """A pod as one looks over its containers: init containers first, then the others."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj
        self._status: Object = obj.get("status") or {}
        spec = obj["spec"]
        init = spec.get("initContainers") or []
        self._sidecars = {
            container["name"] for container in init if container.get("restartPolicy") == "Always"
        }
        self.total = len(spec.get("containers") or ()) + len(self._sidecars)
        self.ready = 0
        self.reason: str = self._status.get("reason") or self._status.get("phase", "")
        if self._gated():
            self.reason = "SchedulingGated"
        self._restarts = _Restarts()
        initializing = self._look_at_init(len(init))
        if not initializing or condition(obj, "Initialized") == "True":
            self._look_at_containers()
        self._look_at_deletion()

    def restart_text(self, now: float) -> str:
        restarts = self._restarts
        if not restarts.count or not restarts.last:
            return str(restarts.count)
        return f"{restarts.count} ({since(restarts.last, now)} ago)"

    def _gated(self) -> bool:
        return any(
            condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"
            for condition in self._status.get("conditions") or ()
        )

    def _look_at_init(self, count: int) -> bool:
        """Whether initialisation is still under way, or has failed."""
        for index, container in enumerate(self._status.get("initContainerStatuses") or ()):
            self._restarts.add(container)
            state = container.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting") or {}
            if ended and not ended.get("exitCode"):
                continue
            if container["name"] in self._sidecars and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if ended:
                self.reason = f"Init:{_ending(ended)}"
            elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{count}"
            return True
        return False

    def _look_at_containers(self) -> None:
        self._restarts = _Restarts()
        for container in self._status.get("initContainerStatuses") or ():
            if container["name"] in self._sidecars:
                self._restarts.add(container)
        running, failure = False, ""
        for container in reversed(self._status.get("containerStatuses") or ()):
            self._restarts.add(container)
            state = container.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting") or {}
            if waiting.get("reason"):
                self.reason = waiting["reason"]
            elif ended:
                self.reason = _ending(ended)
                if ended.get("exitCode"):
                    failure = self.reason
            elif container.get("ready") and "running" in state:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            self._reconsider(running, failure)

    def _reconsider(self, running: bool, failure: str) -> None:
        """One container that completed does not make the pod complete."""
        if running and condition(self._obj, "Ready") == "True":
            self.reason = "Running"
        elif failure:
            self.reason = failure
        elif running:
            self.reason = "NotReady"

    def _look_at_deletion(self) -> None:
        if "deletionTimestamp" not in self._obj["metadata"]:
            return
        if self._status.get("reason") == _LOST:
            self.reason = "Unknown"
        elif self._status.get("phase") not in _COMPLETED:
            self.reason = "Terminating"


def _ending(ended: Object) -> str:
    """Why a container ended, in a word."""
    if ended.get("reason"):
        reason: str = ended["reason"]
        return reason
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _sight(read: Callable[[_Sight], str]) -> Callable[[Object], str]:
    return lambda obj: read(_Sight(obj))


def _address(obj: Object) -> str:
    status = obj.get("status") or {}
    addresses = status.get("podIPs") or [{"ip": status.get("podIP", "")}]
    return addresses[0].get("ip") or NONE


PODS = Columns(
    NAME,
    column("Ready", _sight(lambda pod: f"{pod.ready}/{pod.total}")),
    column("Status", _sight(lambda pod: pod.reason)),
    Column("Restarts", lambda obj, now: _Sight(obj).restart_text(now)),
    AGE,
    column("IP", _address, wide=True),
    column("Node", filled("spec.nodeName", NONE), wide=True),
    column("Nominated Node", filled("status.nominatedNodeName", NONE), wide=True),
    column("Readiness Gates", _gates, wide=True),
    conditions=_conditions,
)
