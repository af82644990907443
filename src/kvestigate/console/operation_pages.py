"""The pages of operations: by section, by form, and by plan and confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvestigate import catalog
from kvestigate.console import actions, forms, planning
from kvestigate.console.desk import Asked, Desk, refusal
from kvestigate.console.forms import Values
from kvestigate.console.frame import Visit, failure, hidden_fields, notice, page, scrolling
from kvestigate.console.markup import Child, Html, blocks, element, joined
from kvestigate.errors import KvestigateError, NotFound, UsageError
from kvestigate.operation import Effect, Operation

_PLAN_FIELDS = ("gpu", "cpu", "memory", "replicas", "one_per_node", "single_node", "labels",
                "exclude", "manifest")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A page that shows what some operations without input answer."""

    title: str
    shown: Mapping[str, str]
    """Operation -> heading."""
    groups: tuple[str, ...]
    """Whose other operations the page links to."""


SECTIONS = {
    "jobs": Section(
        "Jobs",
        {"jobs.list": "Tasks", "jobs.queue": "Queue", "volumes.list": "Volumes"},
        ("jobs", "volumes"),
    ),
    "hosts": Section(
        "Hosts and agents",
        {"workspace.status": "Workspaces", "workspace.gpus": "GPUs of the hosts"},
        ("workspace", "fanout"),
    ),
    "planes": Section("Planes", {"plane.list": "Planes of this server"}, ("plane", "fleet")),
}
"""By path."""


class OperationPages:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def plan(self, asked: Asked) -> Html:
        visit, operation = asked.visit, catalog.operation("plan")
        values = {name: given for name, given in asked.values.items() if name in _PLAN_FIELDS}
        body: Child = notice("Fill in what one replica requests, or paste a manifest.")
        if any(any(given) for given in values.values()):
            body = await self._planned(asked, operation, values)
        fields = [
            control
            for control in forms.controls(operation, values)
            if any(f'id="field-{name}"' in control.text for name in _PLAN_FIELDS)
        ]
        *fields, manifest = fields
        form = element(
            "form", hidden_fields(visit), element("div", *fields, class_="fields"),
            element("details", element("summary", "From a manifest"), manifest,
                    open=bool(values.get("manifest", [""])[0])),
            element("button", "Try it", class_="primary"), method="get", action="/plan",
        )  # fmt: skip
        command = forms.command_line(operation, values, visit.context)
        return page(visit, "plan", "Plan", form, body, command=command)

    async def _planned(self, asked: Asked, operation: Operation[Any, Any], values: Values) -> Html:
        access = self._desk.access(asked.visit.context)
        try:
            given = forms.input_from(operation, values, "")
            solved = await operation.run(actions.reading_context(access), given)
        except KvestigateError as error:
            return refusal(error)
        return planning.answer(solved)

    async def section(self, asked: Asked, name: str) -> Html:
        """Jobs, hosts or planes: what their operations that need no input show."""
        section, visit = SECTIONS[name], asked.visit
        parts = [await self._part(asked, *each) for each in section.shown.items()]
        links = [
            self._operation_link(visit, operation)
            for operation in map(catalog.operation, catalog.CATALOG)
            if operation.name.partition(".")[0] in section.groups
            and operation.name not in section.shown
            and forms.offered(operation, allow_writes=visit.allow_writes)
        ]
        more = element("section", element("h2", "More"), element("ul", *links, class_="operations"))
        return page(visit, name, section.title, *parts, more,
                    command=self._desk.command(visit, next(iter(section.shown))))  # fmt: skip

    async def _part(self, asked: Asked, name: str, heading: str) -> Html:
        operation = catalog.operation(name)
        visit = asked.visit
        try:
            access = self._desk.access(visit.context)
            result = await actions.read(access, operation, {}, "")
            body = scrolling(heading, blocks(result.blocks), class_="scroll result")
        except KvestigateError as error:
            body = refusal(error)
        return element("section", element("h2", heading), body)

    async def operations(self, asked: Asked) -> Html:
        visit = asked.visit
        groups: dict[str, list[Html]] = {}
        for operation in map(catalog.operation, catalog.CATALOG):
            if forms.offered(operation, allow_writes=visit.allow_writes):
                group = operation.name.partition(".")[0]
                groups.setdefault(group, []).append(self._operation_link(visit, operation))
        listed = [joined(*links) for links in groups.values()]
        reads = None
        if not visit.allow_writes:
            reads = notice(
                "This console only reads. Start it with --allow-writes to change things."
            )
        return page(visit, "operations", "Operations", reads,
                    element("ul", *listed, class_="operations"))  # fmt: skip

    def _operation_link(self, visit: Visit, operation: Operation[Any, Any]) -> Html:
        verb = "run" if operation.effect is Effect.READ else "act"
        address = visit.links.to(verb, operation.name)
        effect = None
        if operation.effect is not Effect.READ:
            tone = "bad" if operation.effect is Effect.DESTROY else "warn"
            effect = element("span", operation.effect.value, class_=f"badge {tone}")
        name = element("a", operation.name.replace(".", " "), href=address, class_="strong")
        return element("li", name, " ", effect, " ", operation.summary)

    async def run(self, asked: Asked, name: str) -> Html:
        """The page of an operation that reads: its form, and the result if it was filled in."""
        operation = self._offered(asked.visit, name, reads=True)
        values, where = asked.values, asked.one(forms.NAMESPACE)
        body: Child = None
        if asked.one("run") or not forms.needs_input(operation):
            try:
                access = self._desk.access(asked.visit.context, where)
                result = await actions.read(access, operation, values, where)
                drawn = scrolling("Result", blocks(result.blocks), class_="scroll result")
                body = element("section", element("h2", "Result"), drawn)
            except KvestigateError as error:
                body = refusal(error)
        return self._operation_page(asked, operation, body, method="get")

    async def act(self, asked: Asked, name: str, *, posted: bool) -> Html:
        """The page of an operation that writes: form, then plan, then confirmation."""
        operation = self._offered(asked.visit, name, reads=False)
        if not posted:
            return self._operation_page(asked, operation, None, method="post")
        where = asked.one(forms.NAMESPACE)
        access = self._desk.access(asked.visit.context, where)
        try:
            if digest := asked.one("plan"):
                shown = await actions.act(
                    access, operation, asked.values, where,
                    typed=asked.one("confirmation"), digest=digest,
                )  # fmt: skip
            else:
                shown = await actions.plan(access, operation, asked.values, where)
            body: Child = self._plan_or_result(asked, operation, shown)
        except KvestigateError as error:
            body = refusal(error)
        return self._operation_page(asked, operation, body, method="post")

    def _offered(self, visit: Visit, name: str, *, reads: bool) -> Operation[Any, Any]:
        operation = catalog.operation(name) if name in catalog.CATALOG else None
        if operation is None or (operation.effect is Effect.READ) is not reads:
            raise NotFound(f"there is no such operation: {name}")
        if not forms.offered(operation, allow_writes=visit.allow_writes):
            raise UsageError(
                f"{name} is not offered by this console",
                hint="use the command line, or start the console with --allow-writes",
            )
        return operation

    def _operation_page(
        self, asked: Asked, operation: Operation[Any, Any], body: Child, *, method: str
    ) -> Html:
        visit, where = asked.visit, asked.one(forms.NAMESPACE)
        verb = "run" if method == "get" else "act"
        controls = forms.controls(operation, asked.values)
        form = element(
            "form",
            hidden_fields(visit, posts=method == "post"),
            element("input", type="hidden", name="run", value="1") if method == "get" else None,
            element("div", forms.namespace_control(operation, where), *controls, class_="fields"),
            element("button", "Run" if method == "get" else "Show the plan", class_="primary"),
            method=method, action=f"/{verb}/{operation.name}",
        )  # fmt: skip
        texts = [element("p", operation.summary)]
        texts += (
            [element("p", operation.description, class_="dim")] if operation.description else []
        )
        command = forms.command_line(operation, asked.values, visit.context, where)
        return page(visit, "operations", operation.name.replace(".", " "), *texts, form, body,
                    command=command)  # fmt: skip

    def _plan_or_result(
        self, asked: Asked, operation: Operation[Any, Any], shown: actions.Shown
    ) -> Html:
        drawn = scrolling("Plan", blocks(shown.blocks), class_="scroll result")
        if shown.done:
            return element("section", element("h2", "Done"), drawn, class_="good")
        warning = None
        if shown.changed:
            warning = failure(
                "Nothing was changed: the plan is another one than you confirmed.",
                "Look at the new plan, and confirm it if it is what you want.",
            )
        if not shown.pending:
            return element("section", element("h2", "Plan"), drawn, notice("Nothing is to do."))
        return element("section", warning, element("h2", "Plan"), drawn,
                       self._confirmation(asked, operation, shown.digest))  # fmt: skip

    def _confirmation(self, asked: Asked, operation: Operation[Any, Any], digest: str) -> Html:
        repeated = [
            element("input", type="hidden", name=name, value=value)
            for name, given in asked.values.items()
            if name not in ("context", "form-token", "confirmation", "plan")
            for value in given
        ]
        words = actions.words_to_type(operation)
        question: Child = None
        if words and operation.consequence is not None:
            question = element(
                "div",
                element("label", f"This {operation.consequence.words}. To confirm, type ",
                        element("code", words), for_="confirmation"),
                element("input", type="text", name="confirmation", id="confirmation",
                        required=True, autocomplete="off", spellcheck="false"),
                class_="field",
            )  # fmt: skip
        return element(
            "form",
            hidden_fields(asked.visit, posts=True),
            *repeated,
            element("input", type="hidden", name="plan", value=digest),
            question,
            element("button", "Apply this plan", class_="danger"),
            method="post", action=f"/act/{operation.name}", class_="confirm",
        )  # fmt: skip
