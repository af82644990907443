"""Our canonical form of quantities, beside the one that the API server answers with."""

from __future__ import annotations

import itertools

import pytest

from kvestigate.errors import InputError
from kvestigate.kube import quantities
from tests.upstream.judge import Judge, Refused

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
NUMBERS = ("1", "0", "1.5", "999", "1000", "1024", "1536", "0.1", "123456789", "2.25")
EXPONENTS = ("1e3", "1E3", "1.5e6", "12e-3", "1e-9", "5e0", "100e2", "1e18", "7E-6", "1e+2")
ODD = (
    "+5",
    "007",
    "1.",
    ".5",
    "00",
    "0.0001n",
    "1.0000000001",
    "0.5Ki",
    "1.23456789Gi",
    "0.000001Mi",
    "9223372036854775807",
    "9223372036854775808",
    "123456789012345678901",
    "4611686018427387904Ki",
    "8191Pi",
    "100000000000000000000m",
    "1.234",
    "10.10",
    "1000m",
    "1500m",
    "2000000000n",
    "1000Mi",
    "1048576Ki",
    "1024Mi",
    "3000Ki",
)
# Canonical beyond the largest suffix: the server drops the suffix and so writes another value.
BEYOND = ("1000E", "1000000000000000000000")
REFUSED: tuple[str, ...] = (
    "",
    " ",
    "1K",
    "1ki",
    "1KI",
    "1mi",
    "1.2.3",
    "--1",
    "1e",
    "0x10",
    "abc",
    "1Gib",
    "1GB",
    "1,5",
    "1/2",
    "½",
    "1e1.5",
    "NaN",
    "Inf",
    "1_000",
    "1m1",
)
# The server trims blanks, and takes a missing number for zero: rather a mistake than a wish.
STRICTER = (" 1", "1 ", "m", "Ki", "e3", "+", "-")


def accepted() -> list[str]:
    plain = [f"{number}{suffix}" for number, suffix in itertools.product(NUMBERS, SUFFIXES)]
    return [text for text in (*plain, *EXPONENTS, *ODD) if text not in BEYOND]


def _canonical(judge: Judge, namespace: str, quantity: str) -> str:
    """What the server makes of it, in a field that is neither rounded nor limited."""
    path = f"/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities?dryRun=All"
    body = {"metadata": {"name": "q"}, "storageClassName": "any", "capacity": quantity}
    canonical: str = judge.post(path, body)["capacity"]
    return canonical


def test_canonical_form_is_the_servers(judge: Judge, namespace: str) -> None:
    differing = {}
    for text in accepted():
        theirs, ours = _canonical(judge, namespace, text), str(quantities.parse(text))
        if ours != theirs:
            differing[text] = f"server {theirs}, ours {ours}"
    assert not differing


@pytest.mark.parametrize("text", BEYOND)
@pytest.mark.usefixtures("kubernetes")
def test_we_keep_a_value_that_the_server_loses(text: str, judge: Judge, namespace: str) -> None:
    assert _canonical(judge, namespace, text) == "1"
    assert quantities.parse(str(quantities.parse(text))) == quantities.parse(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_server_refuses_we_refuse(text: str, judge: Judge, namespace: str) -> None:
    with pytest.raises(Refused):
        _canonical(judge, namespace, text)
    with pytest.raises(InputError):
        quantities.parse(text)


@pytest.mark.parametrize("text", STRICTER)
@pytest.mark.usefixtures("kubernetes")
def test_what_is_likely_a_mistake_we_refuse_alone(text: str, judge: Judge, namespace: str) -> None:
    assert _canonical(judge, namespace, text) in ("0", "1")
    with pytest.raises(InputError):
        quantities.parse(text)
