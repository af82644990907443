"""Which of a pod's containers is meant. Pure."""

from __future__ import annotations

from kvestigate.errors import UsageError, nearest
from kvestigate.kube.views.pods import Pod

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def container_of(pod: Pod, wanted: str) -> str:
    """The container that is meant: the one named, the annotated one, or the first."""
    names = [container.name for container in (*pod.spec.containers, *pod.spec.init_containers)]
    if wanted and wanted not in names:
        near = nearest(wanted, names)
        raise UsageError(
            f"--container: pod {pod.metadata.name!r} has no container {wanted!r}",
            hint=(f"did you mean {near!r}? " if near else "") + f"it has: {', '.join(names)}",
        )
    annotated = pod.metadata.annotations.get(_DEFAULT_CONTAINER, "")
    return wanted or (annotated if annotated in names else names[0])
