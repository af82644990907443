"""What leaves the gateway: without secrets, and as long as was asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cybernet.bodies import Answer, Room
from kvestigate.cybernet.fitting import Wish, fitted
from kvestigate.cybernet.leaving import redacted
from kvestigate.cybernet.refusals import TooLarge
from kvestigate.operation import Operation
from kvestigate.workspace.uploads import in_background

_LONG = 64 * 1024
"""Bytes of an answer that is worked on beside the loop."""


async def leaving_answer(
    operation: Operation[Any, Any], result: Any, wish: Wish, room: Room
) -> Answer:
    """The answer of an operation, as an agent gets it.

    What is in workspaces, the agent has brought or made itself; all else is of the cluster.
    """
    answer = Answer(result, room)
    if answer.file is not None:
        _check_file(answer, wish)
        return answer
    own = operation.name.startswith("workspace.")
    body = answer.whole
    short = wish.budget is None or len(body) <= wish.budget
    if own and short and not wish.cursor and not wish.fields:
        return answer
    if len(body) > _LONG:
        return Answer(await in_background(_worked, body, wish, own), room)
    return Answer(_worked(body, wish, own), room)


def _worked(body: bytes, wish: Wish, own: bool) -> Any:
    value = msgspec.json.decode(body)
    # First the secrets: a text that is cut may have lost the name that gives its secret away.
    return fitted(value if own else redacted(value), wish)


def _check_file(answer: Answer, wish: Wish) -> None:
    size = 0 if answer.file is None else answer.file.size * 4 // 3
    if wish.budget is not None and size > wish.budget:
        answer.close()
        raise TooLarge(
            f"the answer would have {size} bytes, and {wish.budget} are asked for",
            "answers.budget",
            hint="read texts with workspace.get_text, or set answer.budget, or fetch over HTTP",
        )
