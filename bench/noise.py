"""A client that gives one plane no rest, in a process of its own.

It leaves the processors to whoever else wants them: a neighbour is somewhere else, and what he
takes from others is to be the server's time, not that of a client on the same machine. Being as
nice as can be is not enough: it would keep a processor for milliseconds once it has it.

python -m bench.noise PORT CA TOKEN PLANE KIND

Of KIND `writes` it writes small objects as fast as it can. Of KIND `fuzz` it does all sorts of
things that are large, wrong or both, and has watches that nobody reads. Of a KIND of
`bench.attacks` it tries to hold the server up. It prints a line once it has begun.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import count
from random import Random
from typing import Any

from bench import attacks
from tests.upstream.judge import Judge, Refused

Act = Callable[[Judge, str, int], object]
"""Does something over a connection, at the root of a plane, with a number of its own."""

_MAPS = "/api/v1/namespaces/default/configmaps"
_PODS = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_WATCHES = 5
KINDS = ("writes", "fuzz")
_KEPT = 500
"""Objects at a time, near enough."""


def main() -> None:
    port, ca, token, plane, kind = sys.argv[1:]
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    context = ssl.create_default_context(cafile=ca)
    root = f"/clusters/{plane}/control-plane"
    with ExitStack() as stack:

        def connect() -> Judge:
            return stack.enter_context(Judge(int(port), context, token=token))

        judge = connect()
        if kind == "fuzz":
            for _ in range(_WATCHES):
                connect().begin("GET", f"{root}{_MAPS}?watch=1")
        for number, act in enumerate(_acts(kind)):
            with suppress(Refused):
                act(judge, root, number)
            if not number:
                print("noise", flush=True)


def _acts(kind: str) -> Iterator[Act]:
    if kind in attacks.ATTACKS:
        return attacks.acts(kind)
    if kind == "writes":
        return (_write for _ in count())
    random = Random(7)
    acts, weights = list(_FUZZ), list(_FUZZ.values())
    return (random.choices(acts, weights)[0] for _ in count())


def _write(judge: Judge, root: str, number: int) -> None:
    judge.post(f"{root}{_MAPS}", _map(number, 1000))


def _write_and_tidy(judge: Judge, root: str, number: int) -> None:
    _write(judge, root, number)
    judge.delete(f"{root}{_MAPS}/m-{number - _KEPT}")


def _write_large(judge: Judge, root: str, number: int) -> None:
    judge.post(f"{root}{_MAPS}", _map(number, 100_000))
    judge.delete(f"{root}{_MAPS}/m-{number}")


def _write_many_fields(judge: Judge, root: str, number: int) -> None:
    data = {f"key-{each}": "x" for each in range(300)}
    judge.post(f"{root}{_MAPS}", {**_map(number, 0), "data": data})
    judge.delete(f"{root}{_MAPS}/m-{number}")


def _change(judge: Judge, root: str, number: int) -> None:
    judge.merge(f"{root}{_MAPS}/kept", {"data": {"number": str(number)}})


def _write_wrong(judge: Judge, root: str, number: int) -> None:
    containers = [{"name": "UPPER CASE", "image": ""} for _ in range(20)]
    judge.post(f"{root}{_PODS}", {"metadata": {"name": "-"}, "spec": {"containers": containers}})


def _write_twice(judge: Judge, root: str, number: int) -> None:
    judge.post(f"{root}{_MAPS}", {"metadata": {"name": "kept"}})


def _write_nonsense(judge: Judge, root: str, number: int) -> None:
    judge.exchange("POST", f"{root}{_MAPS}", {"data": [[number]] * 1000})


def _list(judge: Judge, root: str, number: int) -> None:
    judge.exchange("GET", f"{root}{_MAPS}")


def _tabulate(judge: Judge, root: str, number: int) -> None:
    judge.exchange("GET", f"{root}{_MAPS}", accept=_TABLE)


def _look_around(judge: Judge, root: str, number: int) -> None:
    judge.exchange("GET", f"{root}/snapshot")


def _lose_the_way(judge: Judge, root: str, number: int) -> None:
    judge.get(f"{root}/apis/nothing.example.com/v{number}/here")


_FUZZ: Mapping[Act, int] = {
    _write_and_tidy: 20,
    _write_large: 2,
    _write_many_fields: 2,
    _change: 10,
    _write_wrong: 10,
    _write_twice: 10,
    _write_nonsense: 5,
    _list: 2,
    _tabulate: 2,
    _look_around: 2,
    _lose_the_way: 10,
}
"""What it does, and how often."""


def _map(number: int, size: int) -> dict[str, Any]:
    return {"metadata": {"name": f"m-{number}"}, "data": {"text": "x" * size}}


if __name__ == "__main__":
    main()
