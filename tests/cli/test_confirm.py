"""Nothing is written until both flags are there, and the plan is always shown."""

from __future__ import annotations

import click
import pytest

from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import Command, command
from kvestigate.cli.options import GlobalOptions
from tests.cli.conftest import Invoke


def cordon(consequence: Consequence, done: list[str]) -> Command:
    @command("cordon", examples=())
    @click.argument("node")
    @writes(consequence)
    async def toy(options: GlobalOptions, node: str, confirmation: Confirmation) -> None:
        click.echo(f"would cordon {node}")
        confirmation.require()
        done.append(node)

    return toy


@pytest.mark.parametrize("consequence", Consequence)
def test_both_flags_make_it_happen(invoke: Invoke, consequence: Consequence) -> None:
    done: list[str] = []
    outcome = invoke("n1", "--apply", consequence.flag, root=cordon(consequence, done))
    assert (outcome.code, outcome.out, outcome.err) == (0, "would cordon n1\n", "")
    assert done == ["n1"]


@pytest.mark.parametrize("consequence", Consequence)
@pytest.mark.parametrize("understood", [True, False])
def test_a_dry_run_shows_the_plan_and_ends_well(
    invoke: Invoke, consequence: Consequence, understood: bool
) -> None:
    done: list[str] = []
    flags = [consequence.flag] if understood else []
    outcome = invoke("n1", "--dry-run", *flags, root=cordon(consequence, done))
    assert (outcome.code, outcome.out, outcome.err) == (0, "would cordon n1\n", "")
    assert done == []


def test_a_dry_run_is_not_applied(invoke: Invoke) -> None:
    done: list[str] = []
    root = cordon(Consequence.MODIFIES_HOSTS, done)
    outcome = invoke("n1", "--dry-run", "--apply", Consequence.MODIFIES_HOSTS.flag, root=root)
    assert (outcome.code, outcome.out, done) == (2, "", [])
    assert "--dry-run and --apply contradict each other" in outcome.err


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ([], "--apply --i-understand-this-modifies-cluster were"),
        (["--apply"], "--i-understand-this-modifies-cluster was"),
        (["--i-understand-this-modifies-cluster"], "--apply was"),
    ],
)
def test_a_missing_flag_is_named_and_nothing_happens(
    invoke: Invoke, given: list[str], missing: str
) -> None:
    done: list[str] = []
    outcome = invoke("n1", *given, root=cordon(Consequence.MODIFIES_CLUSTER, done))
    assert (outcome.code, outcome.out, done) == (2, "would cordon n1\n", [])
    flags = missing.rpartition(" ")[0]
    assert outcome.err == (
        f"error: nothing was changed: this modifies the cluster, and {missing} not given\n"
        f"hint: if the plan above is what you want, add {flags}\n"
    )


def test_the_flag_of_another_consequence_does_not_count(invoke: Invoke) -> None:
    done: list[str] = []
    root = cordon(Consequence.DISRUPTS_WORKLOADS, done)
    outcome = invoke("n1", "--apply", Consequence.MODIFIES_CLUSTER.flag, root=root)
    assert (outcome.code, done) == (2, [])
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
