"""The page of one object, and what can be done with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from kvestigate import catalog
from kvestigate.console import actions, explore, objects
from kvestigate.console.contexts import Cluster
from kvestigate.console.desk import Asked, Desk, refusal
from kvestigate.console.frame import Visit, page
from kvestigate.console.links import CLUSTER_SCOPE
from kvestigate.console.markup import Html, blocks, element, joined
from kvestigate.console.objects import Place
from kvestigate.console.relatives import relatives
from kvestigate.errors import KvestigateError, NotFound, UsageError
from kvestigate.inspection.logs import Logs, LogsOptions, streaming
from kvestigate.render.blocks import Block, one_line, printable

_LOG_LINES = 500
"""Of each container, at the start of a page."""

_ACTIONS: Mapping[tuple[str, str], Mapping[str, Mapping[str, str]]] = {
    ("", "nodes"): {
        "node.cordon": {"node": "{name}"},
        "node.uncordon": {"node": "{name}"},
        "node.drain": {"node": "{name}"},
    },
    ("apps", "deployments"): {"scale": {"name": "{name}"}},
}
"""Which operations a kind has a link to, and which fields are filled in; what they need to be
confirmed is what they declare."""
_ALWAYS = {"delete": {"kind": "{kind}", "name": "{name}"}}
LINKED = [pair for links in (*_ACTIONS.values(), _ALWAYS) for pair in links.items()]
"""Every operation that an object links to, with the fields that are filled in."""


class ObjectPages:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._parts: Mapping[str, Callable[[Asked, Cluster, Place], Awaitable[Html]]] = {
            "": self._summary,
            "yaml": self._yaml,
            "why": self._why,
            "logs": self._logs,
        }

    async def object(
        self, asked: Asked, kind: str, namespace: str, name: str, part: str = ""
    ) -> Html:
        cluster = await self._desk.cluster(asked)
        resource = await cluster.discovery.resolve(kind)
        place = Place(resource, "" if namespace == CLUSTER_SCOPE else namespace, name)
        if part not in self._parts:
            raise NotFound(f"an object has no page {part!r}")
        drawn = await self._parts[part](asked, cluster, place)
        visit = asked.visit
        where = f"{place.namespace}/" if place.namespace else ""
        return page(
            visit, "explore", f"{resource.kind} {where}{name}",
            explore.shortcuts(visit, resource.qualified), objects.tabs(visit, place, part), drawn,
            command=_object_command(visit, place, part),
        )  # fmt: skip

    async def _summary(self, asked: Asked, cluster: Cluster, place: Place) -> Html:
        described = await self._result(
            asked, "describe", {"kind": place.resource.qualified, "name": place.name}, place
        )
        body = await self._body(cluster, place)
        tree = objects.tree(
            asked.visit, place, await relatives(cluster.api, cluster.discovery, place, body)
        )
        return joined(
            self._object_actions(asked.visit, place),
            tree,
            element("section", blocks(described), class_="described"),
            objects.commands(asked.visit, place),
        )

    async def _yaml(self, asked: Asked, cluster: Cluster, place: Place) -> Html:
        return objects.yaml_of(place, await self._body(cluster, place))

    async def _why(self, asked: Asked, cluster: Cluster, place: Place) -> Html:
        told = await self._result(
            asked, "why", {"kind": place.resource.qualified, "name": place.name}, place
        )
        return element("section", blocks(told), class_="story")

    async def _logs(self, asked: Asked, cluster: Cluster, place: Place) -> Html:
        options = LogsOptions(_log_target(place), all_containers=True, tail=_LOG_LINES)
        access = self._desk.access(asked.visit.context, place.namespace)
        lines = []
        problem: KvestigateError | None = None
        async with streaming(access, options) as stream:
            try:
                async for line in stream:
                    lines.append(line)
            except KvestigateError as error:
                problem = error  # of one container: the lines of the others are still worth it
        return joined(
            refusal(problem) if problem is not None else None,
            objects.log_lines(asked.visit, place, Logs(tuple(lines)), asked.one("q")[:200]),
        )

    async def follow(
        self, asked: Asked, kind: str, namespace: str, name: str
    ) -> AsyncGenerator[bytes, None]:
        """New lines of the log as server-sent events."""
        cluster = await self._desk.cluster(asked)
        resource = await cluster.discovery.resolve(kind)
        place = Place(resource, "" if namespace == CLUSTER_SCOPE else namespace, name)
        access = self._desk.access(asked.visit.context, place.namespace)
        options = LogsOptions(_log_target(place), all_containers=True, follow=True, tail=0)
        words = asked.one("q").lower()

        async def events() -> AsyncGenerator[bytes, None]:
            yield b"retry: 5000\n\n"
            try:
                async with streaming(access, options) as stream:
                    many = len(stream.sources) > 1
                    async for line in stream:
                        if words in line.text.lower():
                            head = f"{line.source.pod} {line.source.container}: " if many else ""
                            yield _event("line", head + line.text)
            except KvestigateError as error:
                yield _event("end", error.message)
            else:
                yield _event("end", "the log has ended")

        return events()

    def _object_actions(self, visit: Visit, place: Place) -> Html | None:
        """Links to what can be done with the object; where writes are not allowed, none."""
        known = {**_ACTIONS.get((place.resource.group, place.resource.plural), {}), **_ALWAYS}
        links = []
        for name, fields in known.items() if visit.allow_writes else ():
            filled = {key: value.format(kind=place.resource.qualified, name=place.name)
                      for key, value in fields.items()}  # fmt: skip
            address = visit.links.to("act", name, namespace=place.namespace, **filled)
            links.append(element("a", name.replace(".", " "), href=address, class_="button"))
        return element("nav", *links, class_="actions", aria_label="Actions") if links else None

    async def _body(self, cluster: Cluster, place: Place) -> dict[str, Any]:
        # `get_named` asks in the namespace of its connection; this one is shared.
        if "/" in place.name or place.name in ("", ".", ".."):
            raise UsageError(f"{place.name!r} is not a valid name")
        return await cluster.api.get(place.resource, place.name, namespace=place.namespace or None)

    async def _result(
        self, asked: Asked, name: str, fields: Mapping[str, str], place: Place
    ) -> Sequence[Block]:
        access = self._desk.access(asked.visit.context, place.namespace)
        values = {key: [value] for key, value in fields.items()}
        shown = await actions.read(access, catalog.operation(name), values, place.namespace)
        return shown.blocks


def _log_target(place: Place) -> str:
    return f"{place.resource.qualified}/{place.name}"


def _event(name: str, text: str) -> bytes:
    """A server-sent event of one line, with control characters made visible."""
    line = one_line(printable(text))
    return f"event: {name}\ndata: {line}\n\n".encode()


def _object_command(visit: Visit, place: Place, part: str) -> str:
    """The same on the command line."""
    if verb := {"": "describe", "why": "why"}.get(part, ""):
        return place.command(visit, "kvestigate", verb)
    if part == "logs":
        words = ("logs", _log_target(place), "--all-containers")
        return visit.links.command("kvestigate", *words, namespace=place.namespace)
    return place.command(visit, "kubectl", "get", "-o", "yaml")
