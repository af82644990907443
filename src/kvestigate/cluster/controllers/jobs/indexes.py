"""Sets of completion indexes, as Jobs write them: `0,3-5,9`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate.kube.views.pods import Pod

INDEX = "batch.kubernetes.io/job-completion-index"


def parse(text: str | None) -> frozenset[int]:
    """The numbers of `1,3-5`; what does not parse is left out, as nobody else writes it."""
    numbers: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def write(numbers: Iterable[int]) -> str:
    """Runs of three and more as `first-last`, the rest one by one."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def index_of(pod: Pod) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() else None
