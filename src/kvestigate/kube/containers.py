"""Which of a pod's containers is meant. Pure."""

from __future__ import annotations

import difflib

from kvestigate.errors import UsageError
from kvestigate.kube.views.pods import Pod

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def container_of(pod: Pod, wanted: str) -> str:
    """The container that is meant: the one named, the annotated one, or the first."""
    names = [it.name for it in (*pod.spec.containers, *pod.spec.init_containers)]
    if wanted and wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1)
        raise UsageError(
            f"--container: pod {pod.metadata.name!r} has no container {wanted!r}",
            hint=(f"did you mean {near[0]!r}? " if near else "") + f"it has: {', '.join(names)}",
        )
    annotated = pod.metadata.annotations.get(_DEFAULT_CONTAINER, "")
    return wanted or (annotated if annotated in names else names[0])
