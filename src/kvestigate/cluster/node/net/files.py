"""What a pod reads about names: its `/etc/hosts` and `/etc/resolv.conf`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvestigate.cluster.node import container_env
from kvestigate.cluster.node.hosts.interface import Bind
from kvestigate.cluster.node.net.translation import DNS_ADDRESS
from kvestigate.cluster.node.net.zone import DOMAIN
from kvestigate.cluster.node.pods import Container, Pod

HOSTS, RESOLVER = "/etc/hosts", "/etc/resolv.conf"
_MOST_SERVERS = 3
"""More are ignored by the C library."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """A `resolv.conf`."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def text(self) -> str:
        lines = [f"nameserver {server}" for server in self.servers[:_MOST_SERVERS]]
        if self.searches:
            lines.append(f"search {' '.join(self.searches)}")
        if self.options:
            lines.append(f"options {' '.join(self.options)}")
        return "".join(f"{line}\n" for line in lines)

    def variables(self) -> dict[str, str]:
        """The same for the C library where the file cannot be replaced: all but the servers."""
        env = {"LOCALDOMAIN": " ".join(self.searches)} if self.searches else {}
        return env | ({"RES_OPTIONS": " ".join(self.options)} if self.options else {})


def read_resolver(text: str) -> Resolver:
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: list[str] = []
    for line in text.splitlines():
        match line.split("#")[0].split(";")[0].split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search" | "domain", *names]:
                searches = tuple(names)  # the last one counts
            case ["options", *words]:
                options += words
    return Resolver(tuple(servers), searches, tuple(options))


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
        wanted[RESOLVER] = resolver(pod, machine).text()
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
    """By the pod's policy, with what it adds itself."""
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
    name = container_env.hostname(pod)
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
