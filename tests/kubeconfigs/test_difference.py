"""What two kubeconfigs say differently, and what they only write differently."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kvestigate.errors import ConfigError
from kvestigate.kubeconfigs.difference import (
    ADDED,
    CHANGED,
    REMOVED,
    RENAMED,
    EntryChange,
    FieldChange,
    difference,
)
from kvestigate.kubeconfigs.files import compare
from tests.kubeconfigs.conftest import Json, Write, config

SERVER = {"server": "https://one:6443"}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (config(), config(), ()),
        (
            config(SERVER),
            config({"server": "https://two"}),
            (
                EntryChange(
                    "cluster",
                    "c",
                    CHANGED,
                    (FieldChange("server", "https://one:6443", "https://two"),),
                ),
            ),
        ),
        (
            config(user={}),
            config(user={"as": "x"}),
            (EntryChange("user", "c", CHANGED, (FieldChange("as", None, "x"),)),),
        ),
        (config(), config() | {"preferences": {}}, ()),
        (
            config(),
            config(users=[]),
            (
                EntryChange(
                    "user", "c", REMOVED, (FieldChange("token", "sha256:6d229884c126", None),)
                ),
            ),
        ),
        (
            config(users=[]),
            config(user={}),
            (EntryChange("user", "c", ADDED),),
        ),
        (
            config(clusters=[{"name": "a", "cluster": SERVER}]),
            config(clusters=[{"name": "b", "cluster": SERVER}]),
            (EntryChange("cluster", "a -> b", RENAMED),),
        ),
    ],
)
def test_entries(before: Json, after: Json, found: tuple[EntryChange, ...]) -> None:
    assert difference(before, after).entries == found


def test_the_order_of_entries_does_not_matter() -> None:
    two = [{"name": "a", "cluster": SERVER}, {"name": "b", "cluster": {}}]
    assert not difference(config(clusters=two), config(clusters=two[::-1]))


SECRETS: list[tuple[Json, Json]] = [
    ({"token": "hunter2"}, {"token": "hunter3"}),
    ({"password": "hunter2"}, {"password": "hunter3"}),
    ({"client-key-data": "aHVudGVyMg=="}, {"client-key-data": "aHVudGVyMw=="}),
    (
        {"exec": {"env": [{"name": "A", "value": "hunter2"}]}},
        {"exec": {"env": [{"name": "A", "value": "hunter3"}]}},
    ),
    ({"exec": {"args": ["--token=hunter2"]}}, {"exec": {"args": ["--token=hunter3"]}}),
    ({"auth-provider": {"config": {"refresh-token": "hunter2"}}}, {}),
    ({"something-new": "hunter2"}, {"something-new": "hunter3"}),
]


@pytest.mark.parametrize(("before", "after"), SECRETS)
def test_a_secret_is_seen_to_change_and_not_seen(before: Json, after: Json) -> None:
    found = difference(config(user=before), config(user=after))
    assert [it.what for it in found.entries] == [CHANGED]
    for hidden in ("hunter", "aHVudGVy"):
        assert hidden not in repr(found)


def test_the_password_of_a_proxy_is_left_out() -> None:
    found = difference(config(SERVER), config(SERVER | {"proxy-url": "http://me:hunter2@p:3128"}))
    assert found.entries[0].fields[0].after == "http://me:...@p:3128"


def test_a_certificate_beside_the_file_is_the_one_in_it(write: Write) -> None:
    write("PEM", "deep/ca.crt")
    beside = write(config(SERVER | {"certificate-authority": "ca.crt"}), "deep/config")
    data = base64.b64encode(b"PEM").decode()
    inside = write(config(SERVER | {"certificate-authority-data": data}))
    assert not compare(beside, inside)
    write("OTHER", "deep/ca.crt")
    (changed,) = compare(beside, inside).entries
    assert [it.path for it in changed.fields] == ["certificate-authority"]


def test_a_path_that_leads_nowhere_is_compared_as_a_path(write: Write) -> None:
    a = write(config(user={"tokenFile": "x"}), "a")
    b = write(config(user={"tokenFile": "y"}), "b")
    assert compare(a, b).entries[0].fields == (FieldChange("tokenFile", "x", "y"),)


@pytest.mark.parametrize("content", ["kind: Pod", "[]", "a: ["])
def test_what_is_no_kubeconfig(write: Write, content: Any) -> None:
    with pytest.raises(ConfigError):
        compare(write(content, "a"), write(config(), "b"))
