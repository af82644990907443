"""Groups of tasks: what their callers get to see."""

from __future__ import annotations

import asyncio

import pytest

from kvestigate.aio.groups import one_failure
from kvestigate.errors import InputError


async def fail(error: Exception) -> None:
    raise error


async def group(*errors: Exception) -> None:
    with one_failure():
        async with asyncio.TaskGroup() as tasks:
            for error in errors:
                tasks.create_task(fail(error))


async def test_the_first_of_several_errors_is_raised() -> None:
    first = InputError("first")
    with pytest.raises(InputError) as caught:
        await group(first, InputError("second"))
    assert caught.value is first


async def test_a_defect_among_them_is_not_hidden() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await group(InputError("first"), ZeroDivisionError())
    assert caught.group_contains(ZeroDivisionError)


async def test_no_error_is_none() -> None:
    await group()
