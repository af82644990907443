"""From a container's spec to a `Launch` in which nothing refers to the API: PURE but for files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kvestigate.cluster.node.hosts.interface import Bind, Ceiling, Launch, RunKey
from kvestigate.cluster.node.spec import environment, images
from kvestigate.cluster.node.spec.environment import Surroundings
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.cluster.node.volumes import making
from kvestigate.cluster.node.volumes.making import Mountable
from kvestigate.kube import quantities


class AgainstPolicy(environment.MissingReference):
    """The spec forbids what it asks for: `runAsNonRoot` with a user that is root."""


def launch(
    pod: Pod,
    container: Container,
    key: RunKey,
    around: Surroundings,
    made: Mapping[str, Mountable],
    message: Path,
    devices: Mapping[str, str],
) -> Launch:
    """Raises `MissingReference`, `AgainstPolicy` or `EntrypointUnknown`."""
    user = _user(pod, container)
    env = {**environment.environment(pod, container, around), **devices}
    argv = images.argv(
        container.image,
        [environment.expand(word, env) for word in container.command],
        [environment.expand(word, env) for word in container.args],
    )
    message.parent.mkdir(parents=True, exist_ok=True)
    message.touch()
    message.chmod(0o666)
    last_words = Bind(source=str(message), target=container.termination_message_path)
    security, outer = container.security_context, pod.spec.security_context
    shared = () if outer.fs_group is None else (outer.fs_group,)
    return Launch(
        key=key,
        argv=argv,
        env=env,
        workdir=container.working_dir,
        binds=(*making.binds(pod, container, made, env), last_words),
        hostname=environment.hostname(pod),
        tty=container.tty,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        user=user,
        group=_first(security.run_as_group, outer.run_as_group),
        groups=tuple(dict.fromkeys((*shared, *outer.supplemental_groups))),
        read_only_root=security.read_only_root_filesystem,
        host_pid=pod.spec.host_pid,
        shared_pids=pod.spec.share_process_namespace,
        ceiling=ceiling(container),
        host_aliases=bool(pod.spec.host_aliases),
    )


def _user(pod: Pod, container: Container) -> int | None:
    """The user to run as; None for the image's own, which is root, as images are not read."""
    security, outer = container.security_context, pod.spec.security_context
    user = _first(security.run_as_user, outer.run_as_user)
    strict = security.run_as_non_root
    if outer.run_as_non_root if strict is None else strict:
        who = f'(pod: "{pod.full_name}", container: {container.name})'
        if user is None:
            raise AgainstPolicy(f"container has runAsNonRoot and image will run as root {who}")
        if user == 0:
            raise AgainstPolicy(f"container's runAsUser breaks non-root policy {who}")
    return user


def ceiling(container: Container) -> Ceiling:
    """What a container's limits come to."""
    limits = container.resources.limits
    return Ceiling(
        memory=quantities.whole(limits["memory"]) if "memory" in limits else None,
        cpu_millis=quantities.millis(limits["cpu"]) if "cpu" in limits else None,
    )


def _first(own: int | None, inherited: int | None) -> int | None:
    return own if own is not None else inherited
