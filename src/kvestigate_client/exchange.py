"""Operations written once and run blocking or asynchronously.

An operation is a generator: it yields requests, is sent their answers, and returns a result.
It does no I/O. `Blocking` and `Asynchronous` are the two ways to run one, and `operation`
makes a method of it that fits whichever class it is called on.

    class Plane(PlaneOperations, Blocking): ...            plane.snapshot() -> Snapshot
    class AsyncPlane(PlaneOperations, Asynchronous): ...   await plane.snapshot()
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from kvestigate_client.contract import JSON, Outgoing
from kvestigate_client.failures import Unreachable, failure

if TYPE_CHECKING:  # importing it takes a while, and not all who import the SDK send something
    import httpx2

P = ParamSpec("P")
T = TypeVar("T")

_AT_A_TIME = 16
"""Requests of an asynchronous client. Servers answer no faster for more, and httpx took ten times
as much CPU for 500 requests at once as for the same requests a few at a time."""

Steps: TypeAlias = Generator[Outgoing, Any, T]
"""Yields requests, gets what they were answered with as decoded JSON."""


class Blocking:
    """Runs operations while the caller waits."""

    def __init__(self, http: httpx2.Client, timeout: float) -> None:
        self._http = http
        self._timeout = timeout

    def _run(self, steps: Steps[T]) -> T:
        try:
            outgoing = next(steps)
            while True:
                try:
                    answer = self._ask(outgoing)
                except Exception as error:  # noqa: BLE001 - it is raised where it was asked
                    outgoing = steps.throw(error)
                else:
                    outgoing = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _ask(self, outgoing: Outgoing) -> Any:
        import httpx2

        arguments = _arguments(outgoing, self._timeout)
        try:
            if outgoing.until is None:
                response = self._http.request(outgoing.method, outgoing.path, **arguments)
                return _value(response)
            with self._http.stream(outgoing.method, outgoing.path, **arguments) as response:
                if response.is_error:
                    response.read()
                    return _value(response)
                for line in response.iter_lines():
                    if outgoing.until(value := json.loads(line)):
                        return value
                return None
        except httpx2.TransportError as error:
            raise _unreachable(self._http.base_url, error) from error


class AsyncHttp:
    """Has a few requests on their way at a time, however many are wanted."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.turns = asyncio.Semaphore(_AT_A_TIME)


class Asynchronous:
    """Runs operations that the caller awaits."""

    def __init__(self, http: AsyncHttp, timeout: float) -> None:
        self._http = http
        self._timeout = timeout

    async def _run(self, steps: Steps[T]) -> T:
        try:
            outgoing = next(steps)
            while True:
                try:
                    answer = await self._ask(outgoing)
                except Exception as error:  # noqa: BLE001 - it is raised where it was asked
                    outgoing = steps.throw(error)
                else:
                    outgoing = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _ask(self, outgoing: Outgoing) -> Any:
        import httpx2

        arguments = _arguments(outgoing, self._timeout)
        try:
            if outgoing.until is None:
                async with self._http.turns:
                    response = await self._http.client.request(
                        outgoing.method, outgoing.path, **arguments
                    )
                return _value(response)
            async with self._http.client.stream(
                outgoing.method, outgoing.path, **arguments
            ) as response:
                if response.is_error:
                    await response.aread()
                    return _value(response)
                async for line in response.aiter_lines():
                    if outgoing.until(value := json.loads(line)):
                        return value
                return None
        except httpx2.TransportError as error:
            raise _unreachable(self._http.client.base_url, error) from error


class operation(Generic[P, T]):
    """A method of a class that is Blocking or Asynchronous, made from a generator."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self.steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> operation[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, instance: Asynchronous, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._run(self.steps(instance, *args, **kwargs))

        call.__doc__ = self.__doc__
        return call


def _arguments(outgoing: Outgoing, timeout: float) -> dict[str, Any]:
    """For httpx2."""
    import httpx2

    headers = {"accept": JSON}
    arguments: dict[str, Any] = {
        "params": outgoing.query,
        "headers": headers,
        # A request that waits for the client's own other requests says nothing of the server.
        "timeout": httpx2.Timeout(outgoing.timeout or timeout, pool=None),
    }
    if outgoing.body is not None:
        arguments["content"] = outgoing.content
        headers["content-type"] = outgoing.media
    return arguments


def _value(response: httpx2.Response) -> Any:
    content = response.content
    value = json.loads(content) if content[:1] in (b"{", b"[") else content.decode()
    if response.is_error:
        raise failure(response.status_code, value)
    return value


def _unreachable(url: httpx2.URL, error: httpx2.TransportError) -> Unreachable:
    return Unreachable(f"{url}: {str(error) or type(error).__name__}")
