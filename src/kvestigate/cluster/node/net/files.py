"""What a pod reads about names: its `/etc/hosts` and `/etc/resolv.conf`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvestigate.cluster.node.hosts import resolv_conf
from kvestigate.cluster.node.hosts.interface import Bind
from kvestigate.cluster.node.hosts.resolv_conf import Resolver
from kvestigate.cluster.node.net.translation import DNS_ADDRESS
from kvestigate.cluster.node.net.zone import DOMAIN
from kvestigate.cluster.node.spec import environment
from kvestigate.cluster.node.spec.pod import Container, Pod

HOSTS = "/etc/hosts"


def binds(
    pod: Pod, container: Container, root: Path, ip: str, machine: Resolver
) -> tuple[Bind, ...]:
    """The files of a container's own, written where it sees them; PURE but for that.

    What it mounts there itself is left to it. A pod in the machine's network has the machine's,
    unless it asks for others.
    """
    spec = pod.spec
    wanted: dict[str, str] = {}
    if not spec.host_network or spec.host_aliases:
        wanted[HOSTS] = hosts(pod, ip, Path(HOSTS).read_text())
    if not spec.host_network or asks_the_cluster(pod) or spec.dns_config is not None:
        wanted[resolv_conf.PATH] = resolver(pod, machine).text()
    for mount in container.volume_mounts:
        wanted.pop(mount.mount_path, None)
    made = []
    for target, content in wanted.items():
        path = root / pod.metadata.uid / ".etc" / Path(target).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        made.append(Bind(str(path), target))
    return tuple(made)


def asks_the_cluster(pod: Pod) -> bool:
    """Whether names are first looked for in the cluster."""
    policy = pod.spec.dns_policy
    return policy == "ClusterFirstWithHostNet" or (
        policy == "ClusterFirst" and not pod.spec.host_network
    )


def resolver(pod: Pod, machine: Resolver) -> Resolver:
    """The resolver that follows from the pod's dnsPolicy and dnsConfig."""
    if asks_the_cluster(pod):
        local = (f"{pod.metadata.namespace}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN)
        made = Resolver((DNS_ADDRESS,), (*local, *machine.searches), ("ndots:5",))
    else:
        made = Resolver() if pod.spec.dns_policy == "None" else machine
    own = pod.spec.dns_config
    if own is None:
        return made
    options = {word.partition(":")[0]: word for word in made.options}
    for option in own.options:
        options[option.name] = f"{option.name}:{option.value}" if option.value else option.name
    return Resolver(
        _unique((*made.servers, *own.nameservers)),
        _unique((*made.searches, *own.searches)),
        tuple(options.values()),
    )


def hosts(pod: Pod, ip: str, machine: str) -> str:
    """A pod in the machine's network has the machine's file, and its own aliases."""
    lines = [machine.rstrip("\n")] if pod.spec.host_network else _own_hosts(pod, ip)
    lines += [f"{alias.ip}\t{' '.join(alias.hostnames)}" for alias in pod.spec.host_aliases]
    return "".join(f"{line}\n" for line in lines)


def _own_hosts(pod: Pod, ip: str) -> list[str]:
    name = environment.hostname(pod)
    names = [name]
    if pod.spec.subdomain:
        names.insert(0, f"{name}.{pod.spec.subdomain}.{pod.metadata.namespace}.svc.{DOMAIN}")
    return [
        "# Written by the node for this pod.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        f"{ip}\t{' '.join(names)}",
    ]


def _unique(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
