"""The contract, the server, the definition of Fleets and the SDK say the same."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from kvestigate.cluster.plane.tenancy.environment.routes import ROUTES
from kvestigate.cluster.plane.tenancy.fleets.definition import schema
from kvestigate_client import Connection, PlaneClient
from kvestigate_client.contract import Outgoing
from kvestigate_client.exchange import Blocking
from kvestigate_client.failures import Invalid

SOURCE = (
    files("kvestigate.cluster.plane.tenancy.environment").joinpath("kplane.v1.yaml").read_bytes()
)
CONTRACT: dict[str, Any] = yaml.safe_load(SOURCE)
PLANE = "/clusters/{clusterID}/control-plane"
METHODS = {"get", "post", "patch", "put", "delete"}


def operations() -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, item in CONTRACT["paths"].items()
        for method in item
        if method in METHODS
    }


def test_the_server_answers_what_the_contract_names() -> None:
    served = {(method, PLANE + path) for path, methods in ROUTES.items() for method in methods}

    assert {each for each in operations() if each[1].startswith(PLANE)} == served


def test_fleets_are_what_the_contract_says() -> None:
    described = CONTRACT["components"]["schemas"]["Fleet"]["properties"]

    assert {"spec": described["spec"], "status": described["status"]} == schema()["properties"]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_it_is_served_to_everyone_as_it_stands(kubeconfig: Path, suffix: str) -> None:
    arguments = Connection.from_kubeconfig(kubeconfig).arguments()
    arguments["headers"].pop("authorization")
    with httpx2.Client(**arguments) as stranger:
        answer = stranger.get(f"/openapi/kplane.{suffix}")
        again = stranger.get(
            f"/openapi/kplane.{suffix}", headers={"if-none-match": answer.headers["etag"]}
        )

    assert answer.status_code == 200
    assert answer.json() == CONTRACT if suffix == "json" else answer.content == SOURCE
    assert again.status_code == 304


def test_the_sdk_uses_all_of_it_and_nothing_else_and_answers_fit(
    client: PlaneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate = importlib.import_module("jsonschema").Draft202012Validator
    used: set[tuple[str, str]] = set()
    original = Blocking._ask

    def noted(self: Any, outgoing: Outgoing) -> Any:
        path = template_of(outgoing.path)
        if path is None:
            return original(self, outgoing)
        used.add((outgoing.method, path))
        answer = original(self, outgoing)
        if outgoing.until is None:
            fits = answer_schema(outgoing.method, path)
            errors = list(
                validate({**fits, "components": CONTRACT["components"]}).iter_errors(answer)
            )
            assert errors == [], f"{outgoing.method} {path}"
        return answer

    monkeypatch.setattr(Blocking, "_ask", noted)
    exercise(client)

    assert used == operations()


def exercise(client: PlaneClient) -> None:
    """Everything that the SDK can do, once."""
    client.planes()
    client.contract()
    client.contract_text()
    plane = client.create("alpha")
    client.exists("alpha")
    start = plane.checkpoint("start")
    plane.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    plane.checkpoints()
    plane.snapshot()
    plane.diff("checkpoint:start")
    plane.events(start.resource_version)
    plane.restore("start")
    plane.drop_checkpoint("start")
    (copy,) = plane.fork()
    with pytest.raises(Invalid, match="stepped"):
        copy.step()  # nobody works on planes here
    fleet = client.fleet("crew")
    fleet.create(2)
    fleet.wait(timeout=20)
    fleet.scale(1)
    client.fleets()
    fleet.delete()
    client.delete("alpha")


def template_of(path: str) -> str | None:
    """The path of the contract that this is one of; None if it is Kubernetes' own."""
    return next((each for each in CONTRACT["paths"] if _pattern(each).fullmatch(path)), None)


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)))


def answer_schema(method: str, path: str) -> dict[str, Any]:
    responses = CONTRACT["paths"][path][method.lower()]["responses"]
    (found,) = (responses[code] for code in responses if code.startswith("2"))
    content = found["content"]
    chosen: dict[str, Any] = next(iter(content.values()))["schema"]
    return chosen


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


@pytest.mark.parametrize("reference", sorted(set(references(CONTRACT))))
def test_references_lead_somewhere(reference: str) -> None:
    found: Any = CONTRACT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    assert found


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [
        CONTRACT["paths"][path][method.lower()]["operationId"] for method, path in operations()
    ]
    assert len(names) == len(set(names))
