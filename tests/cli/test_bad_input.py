"""Whatever is wrong, the user gets a sentence and a way out: never a traceback.

The cases are in `mistakes/*.yaml`: what the user types and has, and what stderr says then, to
the letter. `{home}` is the home directory, `{port}` the port of the case's server. `config`
is the text of `~/.kube/config`; or `cluster` and `user` are what its entries have. The server
refuses connections unless `answers` says what it answers, by the last part of the path.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.http.certificates import CertificateAuthority, KeyPair
from kvestigate.http.message import Handler, Request, Response
from kvestigate.http.tls import server_context
from tests.cli.conftest import Invoke, Outcome, Start, answering, kubeconfig

MISTAKES = Path(__file__).parent / "mistakes"
CASES: list[dict[str, Any]] = [
    case for file in sorted(MISTAKES.glob("*.yaml")) for case in yaml.safe_load(file.read_text())
]

NOBODY = "https://127.0.0.1:1"
"""No one listens on port 1."""


def answers(given: dict[str, dict[str, Any]]) -> Handler:
    async def handle(request: Request) -> Response:
        answer = given.get(request.path.rpartition("/")[2]) or given["*"]
        if answer["status"] == 0:
            await asyncio.Event().wait()
        body = answer["text"].encode() if "text" in answer else answer["json"]
        response = await answering(answer["status"], body)(request)
        assert isinstance(response, Response)
        return response

    return handle


def config_of(case: dict[str, Any], server: str) -> str | None:
    if "config" in case:
        text: str = case["config"]
        return text
    if server == NOBODY and "cluster" not in case:
        return None
    entry = {"server": server, **case.get("cluster", {})}
    return kubeconfig(user=case.get("user"), **entry).replace(*case.get("replace", ("", "")))


def write_config(home: Path, config: str) -> None:
    (home / ".kube").mkdir(exist_ok=True)
    (home / ".kube" / "config").write_text(config)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_mistake_gets_a_sentence(
    invoke: Invoke,
    start: Start,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: dict[str, Any],
) -> None:
    server, port = NOBODY, 1
    if "answers" in case:
        running = start(answers(case["answers"]))
        server, port = running.url, running.port
    config = config_of(case, server)
    if config is not None:
        write_config(home, config)
    (home / "loop").symlink_to("loop")
    for name, value in case.get("environ", {}).items():
        monkeypatch.setenv(name, value)

    outcome = invoke(*case["args"].split())

    expected = case["stderr"].replace("{home}", str(home)).replace("{port}", str(port))
    assert (outcome.code, outcome.err) == (case["code"], expected)


def test_the_table_is_long_enough_and_names_each_case_once() -> None:
    names = [case["case"] for case in CASES]
    assert len(names) >= 25
    assert len(names) == len(set(names))


NOW = datetime.datetime.now(datetime.UTC)
LONG_AGO = NOW - datetime.timedelta(days=1000)
AUTHORITY = CertificateAuthority.create("kubernetes", now=LONG_AGO)
STRANGER = CertificateAuthority.create("kubernetes", now=LONG_AGO)


def asked_over_tls(
    invoke: Invoke, start: Start, home: Path, pair: KeyPair, trusted: CertificateAuthority
) -> tuple[Outcome, int]:
    context = server_context(certificate=pair.certificate, key=pair.key)
    server = start(answering(200, {}), context)
    authority = base64.b64encode(trusted.pair.certificate).decode()
    write_config(home, kubeconfig(server.url, **{"certificate-authority-data": authority}))
    return invoke("debug", "api"), server.port


@pytest.mark.parametrize(
    ("names", "issued", "trusted", "why", "hint"),
    [
        (
            ["127.0.0.1"],
            NOW,
            STRANGER,
            "unable to get local issuer certificate",
            "the CA that signed it is not trusted: give that CA's certificate",
        ),
        (
            ["127.0.0.1"],
            LONG_AGO,
            AUTHORITY,
            "certificate has expired",
            "the certificate has expired: renew it, or check this machine's clock",
        ),
        (
            ["kubernetes"],
            NOW,
            AUTHORITY,
            "IP address mismatch, certificate is not valid for '127.0.0.1'.",
            "the certificate is for other addresses: set the TLS server name it is for",
        ),
    ],
    ids=["signed by a stranger", "expired", "for another name"],
)
def test_a_server_certificate_that_cannot_be_trusted(
    invoke: Invoke,
    start: Start,
    home: Path,
    names: list[str],
    issued: datetime.datetime,
    trusted: CertificateAuthority,
    why: str,
    hint: str,
) -> None:
    pair = AUTHORITY.issue_server("server", names, now=issued)
    outcome, port = asked_over_tls(invoke, start, home, pair, trusted)
    message = f"the certificate of 127.0.0.1:{port} is not accepted: {why}"
    assert (outcome.code, outcome.err) == (3, f"error: {message}\nhint: {hint}\n")


def test_https_to_a_server_that_speaks_http(invoke: Invoke, start: Start, home: Path) -> None:
    server = start(answering(200, {}))
    write_config(home, kubeconfig(server.url.replace("http:", "https:")))
    outcome = invoke("debug", "api")
    assert (outcome.code, outcome.err) == (
        3,
        f"error: 127.0.0.1:{server.port} does not speak TLS\nhint: use http:// or check the port\n",
    )
