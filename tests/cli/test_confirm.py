"""Nothing is written until both flags are there, and the plan is always shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import pytest

from kvestigate.cli.command import Command
from kvestigate.cli.derived import command_of
from kvestigate.operation import (
    Consequence,
    Context,
    Effect,
    Operation,
    param,
    touches_nothing,
)
from kvestigate.render.blocks import text
from tests.cli.conftest import Invoke


@dataclass(frozen=True)
class Toy:
    node: Annotated[str, param("Which.", argument=True)]


@dataclass(frozen=True)
class Toyed:
    line: str


@dataclass
class Toys:
    """An operation that writes, and its command."""

    done: list[str] = field(default_factory=list)

    def command(self, consequence: Consequence, *, needs_apply: bool = True) -> Command:
        async def handler(context: Context, toy: Toy) -> Toyed:
            if context.apply:
                self.done.append(toy.node)
            return Toyed(f"would cordon {toy.node}")

        operation: Operation[Toy, Toyed] = Operation(
            name="cordon",
            summary="Cordon a toy.",
            input=Toy,
            output=Toyed,
            effect=Effect.WRITE,
            consequence=consequence,
            needs_apply=needs_apply,
            touches=touches_nothing,
            handler=handler,
            render=lambda toyed: [text(toyed.line)],
        )
        return command_of(operation)


@pytest.fixture
def toys() -> Toys:
    return Toys()


@pytest.mark.parametrize("consequence", Consequence)
def test_both_flags_make_it_happen(invoke: Invoke, toys: Toys, consequence: Consequence) -> None:
    outcome = invoke("n1", "--apply", consequence.flag, root=toys.command(consequence))
    assert (outcome.code, outcome.out, outcome.err) == (0, "would cordon n1\n", "")
    assert toys.done == ["n1"]


@pytest.mark.parametrize("consequence", Consequence)
@pytest.mark.parametrize("understood", [True, False])
def test_a_dry_run_shows_the_plan_and_ends_well(
    invoke: Invoke, toys: Toys, consequence: Consequence, understood: bool
) -> None:
    flags = [consequence.flag] if understood else []
    outcome = invoke("n1", "--dry-run", *flags, root=toys.command(consequence))
    assert (outcome.code, outcome.out, outcome.err) == (0, "would cordon n1\n", "")
    assert toys.done == []


def test_a_dry_run_is_not_applied(invoke: Invoke, toys: Toys) -> None:
    root = toys.command(Consequence.MODIFIES_HOSTS)
    outcome = invoke("n1", "--dry-run", "--apply", Consequence.MODIFIES_HOSTS.flag, root=root)
    assert (outcome.code, outcome.out, toys.done) == (2, "", [])
    assert "--dry-run and --apply contradict each other" in outcome.err


FLAG = Consequence.MODIFIES_CLUSTER.flag


@pytest.mark.parametrize(
    ("given", "missing"), [([], f"--apply {FLAG}"), ([FLAG], "--apply"), (["--exit-code"], "")]
)
def test_without_apply_the_plan_is_a_preview(
    invoke: Invoke, toys: Toys, given: list[str], missing: str
) -> None:
    outcome = invoke("n1", *given, root=toys.command(Consequence.MODIFIES_CLUSTER))
    assert (outcome.out, toys.done) == ("would cordon n1\n", [])
    assert outcome.code == (2 if "--exit-code" in given else 0)
    said = f"nothing was changed; to apply this plan, add {missing or f'--apply {FLAG}'}\n"
    assert outcome.err == said


def test_apply_without_the_flag_is_a_mistake(invoke: Invoke, toys: Toys) -> None:
    outcome = invoke("n1", "--apply", root=toys.command(Consequence.MODIFIES_CLUSTER))
    assert (outcome.code, outcome.out, toys.done) == (2, "would cordon n1\n", [])
    assert f"add {FLAG}" in outcome.err


@pytest.mark.parametrize(("given", "code"), [([], 0), (["--apply"], 2)])
def test_the_flag_alone_is_enough_where_the_operation_says_so(
    invoke: Invoke, toys: Toys, given: list[str], code: int
) -> None:
    root = toys.command(Consequence.MODIFIES_CLUSTER, needs_apply=False)
    assert invoke("n1", *given, root=root).code == code
    assert toys.done == []
    assert invoke("n1", *given, FLAG, root=root).code == 0
    assert toys.done == ["n1"]


def test_the_flag_of_another_consequence_does_not_count(invoke: Invoke, toys: Toys) -> None:
    root = toys.command(Consequence.DISRUPTS_WORKLOADS)
    outcome = invoke("n1", "--apply", Consequence.MODIFIES_CLUSTER.flag, root=root)
    assert (outcome.code, toys.done) == (2, [])
    assert "no such option '--i-understand-this-modifies-cluster'" in outcome.err


@pytest.mark.parametrize(
    ("consequence", "flag"),
    [
        (Consequence.MODIFIES_CLUSTER, "--i-understand-this-modifies-cluster"),
        (Consequence.MODIFIES_HOSTS, "--i-understand-this-modifies-hosts"),
        (Consequence.WRITES_TO_HOSTS, "--i-understand-this-writes-to-hosts"),
        (Consequence.DISRUPTS_WORKLOADS, "--i-understand-this-disrupts-workloads"),
    ],
)
def test_the_flags_are_spelled_as_documented(consequence: Consequence, flag: str) -> None:
    assert consequence.flag == flag


def test_a_mistyped_flag_is_answered_with_the_one_that_was_meant(
    invoke: Invoke, toys: Toys
) -> None:
    outcome = invoke("n1", "--aply", root=toys.command(Consequence.MODIFIES_CLUSTER))
    assert (outcome.code, toys.done) == (2, [])
    assert "did you mean `--apply`?" in outcome.err
