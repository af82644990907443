"""The kubeconfig of a plane, made from its server's."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.errors import ConfigError, InputError
from kvestigate.planes.kubeconfig import for_plane


def config(server: str = "https://127.0.0.1:6443") -> dict[str, Any]:
    return {
        "clusters": [
            {"name": "other", "cluster": {"server": "https://other"}},
            {"name": "c", "cluster": {"server": server, "certificate-authority-data": "Y2E="}},
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


@pytest.mark.parametrize(
    ("server", "plane", "expected"),
    [
        ("https://h:1", "alpha", "https://h:1/clusters/alpha/control-plane"),
        ("https://h:1/", "alpha", "https://h:1/clusters/alpha/control-plane"),
        ("https://h:1", "root", "https://h:1"),
        (
            "https://h:1/clusters/alpha/control-plane",
            "beta",
            "https://h:1/clusters/beta/control-plane",
        ),
    ],
)
def test_the_server_becomes_the_planes(server: str, plane: str, expected: str) -> None:
    made = for_plane(config(server), plane)

    [entry] = made["clusters"]
    assert entry["cluster"] == {"server": expected, "certificate-authority-data": "Y2E="}
    assert made["users"] == [{"name": "u", "user": {"token": "t"}}]
    assert made["contexts"] == [
        {"name": made["current-context"], "context": {"cluster": entry["name"], "user": "u"}}
    ]
    assert plane in made["current-context"]


def test_an_impossible_id_is_refused() -> None:
    with pytest.raises(InputError, match="'A/b' cannot be the id of a plane"):
        for_plane(config(), "A/b")


@pytest.mark.parametrize("missing", ["contexts", "clusters", "users"])
def test_an_incomplete_file_is_named(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"no {missing[:-1]} "):
        for_plane({**config(), missing: []}, "alpha")
