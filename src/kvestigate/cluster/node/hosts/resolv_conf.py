"""The `resolv.conf` of a machine or of a container. Pure."""

from __future__ import annotations

from dataclasses import dataclass

PATH = "/etc/resolv.conf"
_MOST_SERVERS = 3
"""More are ignored by the C library."""


@dataclass(frozen=True, slots=True)
class Resolver:
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


def read(text: str) -> Resolver:
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
