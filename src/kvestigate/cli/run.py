"""How a command runs its operation: plan or act, show the result, ask for what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation
from kvestigate.cli.files import keep_json
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting, ticking

if TYPE_CHECKING:
    from kvestigate.client.access import Access
    from kvestigate.node_access.model import NodeAccess
    from kvestigate.operation import Context, Operation
    from kvestigate.render.blocks import Block


@dataclass(frozen=True, slots=True)
class Run:
    """What a command that runs an operation is given first: the call, and the global options."""

    operation: Operation[Any, Any]
    options: GlobalOptions
    confirmation: Confirmation | None
    """None where the operation has nothing to confirm."""
    resolve: Callable[[], Access] | None = None
    """Which server, if that is not what the global options say."""

    @property
    def acts(self) -> bool:
        """Whether the plan is carried out, not only shown."""
        return self.confirmation is None or self.confirmation.given

    def context(
        self,
        via: NodeAccess | None = None,
        *,
        owner: str = "",
        progress: Any = None,
    ) -> Context:
        from kvestigate.node_access.model import NodeAccess
        from kvestigate.operation import Context

        return Context(
            self.resolve or partial(access_of, self.options),
            apply=self.acts,
            owner=owner,
            via=via or NodeAccess(),
            wanted=self.options.access(),
            progress=progress,
        )

    async def __call__(
        self,
        input: object,
        *,
        via: NodeAccess | None = None,
        owner: str = "",
        json_path: Path | None = None,
        doing: str = "",
        planning: str = "",
        render: Callable[[Any], Sequence[Block]] | None = None,
    ) -> Any:
        """Run it and print the result; if that is a preview, say how to apply it and end.

        `doing` is shown while somebody waits, `planning` instead of it when nothing is changed.
        """
        self.announce(input, via)
        line = doing if self.acts or not planning else planning
        if not line and self.operation.doing is not None:
            line = self.operation.doing(input)
        progress: AbstractContextManager[Any] | None = None
        if self.operation.follows:
            from kvestigate.cli.watching import watching

            progress = watching()
        elif self.operation.counts:
            progress = counting(line or "reading")
        elif line:
            progress = ticking(line)
        result = await self.result(input, via=via, owner=owner, progress=progress)
        emit(self.options, result, render or partial(self.operation.blocks, input))
        keep_json(json_path, result)
        self.confirm(result)
        return result

    async def result(
        self,
        input: object,
        *,
        via: NodeAccess | None = None,
        owner: str = "",
        progress: AbstractContextManager[Any] | None = None,
    ) -> Any:
        """Only run it: for commands that show the result in a way of their own."""
        with progress or nullcontext() as report:
            context = self.context(via, owner=owner, progress=report)
            return await self.operation.run(context, input)

    def announce(self, input: object, via: NodeAccess | None = None) -> None:
        """Say what will be done, where no plan can be made; end there if it is not confirmed."""
        if self.operation.announce is None:
            return
        import click

        click.echo(self.operation.announce(self.context(via), input), err=True)
        if self.confirmation is not None:
            self.confirmation.conclude()

    def confirm(self, result: object) -> None:
        """End the command with a word on the missing flags, if the result has things left to do."""
        if self.confirmation is not None and self.operation.pending(result):
            self.confirmation.conclude()
