"""The pods of all nodes of a process, from one watch."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.client.api import PODS, Api
from kvestigate.client.cache import Change, Key
from kvestigate.client.call import Selection
from kvestigate.client.informer import Informer
from kvestigate.cluster.node.spec.pod import Pod
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.network import Service

SERVICES = Resource("", "v1", "services", "Service")

Notice = Callable[[Key], None]


class Feed:
    """Tells each node which of its pods changed."""

    def __init__(self, api: Api) -> None:
        bound = Selection(fields="spec.nodeName!=")
        self.pods: Informer[Pod] = api.informer(PODS, bound, type=Pod)
        self.services: Informer[Service] = api.informer(SERVICES, type=Service)
        self._listeners: dict[str, Notice] = {}
        self._subscribed = False

    def listen(self, node: str, notice: Notice) -> Callable[[], None]:
        """Tell `notice` of every pod of `node`, those that are here first."""
        if not self._subscribed:
            self.pods.subscribe(self._on_change)
            self._subscribed = True
        for pod in self.pods:
            if pod.spec.node_name == node:
                notice(Key(pod.metadata.namespace, pod.metadata.name))
        self._listeners[node] = notice

        def leave() -> None:
            self._listeners.pop(node, None)

        return leave

    def pods_of(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == node]

    def _on_change(self, change: Change[Pod]) -> None:
        for pod in (change.old, change.new):
            if pod is not None:
                notice = self._listeners.get(pod.spec.node_name)
                if notice is not None:
                    notice(change.key)
