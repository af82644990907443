"""The same access in another form: what is written, where, and what is never overwritten."""

from __future__ import annotations

import base64
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kvestigate.client.access import AccessOptions
from kvestigate.client.kubeconfig import load
from kvestigate.errors import ConfigError, UsageError
from kvestigate.kubeconfigs.convert import Conversion, ConvertOptions, convert
from kvestigate.kubeconfigs.files import compare
from kvestigate.kubeconfigs.strategies import NAMES
from tests.client.identities import NOON
from tests.kubeconfigs.conftest import Json, Write, config

SERVER = {"server": "https://one:6443"}
CA = "-----BEGIN CERTIFICATE-----\n"


async def run(strategy: Any, *paths: Path, environ: Json | None = None, **more: Any) -> Conversion:
    access = AccessOptions(context=more.pop("context", ""))
    return await convert(access, ConvertOptions(strategy, paths, **more), environ or {}, NOON)


def mode(path: Path | str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def inside(directory: Path) -> list[str]:
    return sorted(it.name for it in directory.iterdir())


async def test_a_preview_writes_nothing(write: Write, tmp_path: Path) -> None:
    path = write(config())
    before = path.read_bytes()
    seen = await run("rename", path, new_name="prod")
    assert (seen.applied, path.read_bytes()) == (False, before)
    assert [it.path for it in seen.outputs] == [str(path)]
    assert inside(tmp_path) == [path.name]


async def test_in_place_keeps_the_old_one_and_closes_the_new_one(write: Write) -> None:
    path = write(config() | {"extensions": [{"name": "ours", "extension": {"a": 1}}]})
    path.chmod(0o644)
    before = path.read_bytes()
    done = await run("rename", path, new_name="prod", apply=True)
    (output,) = done.outputs
    assert output.backup == f"{path}.20300101T120000Z.bak"
    assert path.with_name(Path(output.backup).name).read_bytes() == before
    assert (mode(path), mode(output.backup)) == (0o600, 0o600)
    assert load(path).current_context == "prod"
    assert "ours" in path.read_text()
    assert not path.with_name("config.lock").exists()


@pytest.mark.parametrize("kind", ["context", "cluster", "user"])
async def test_renaming_keeps_what_refers_to_it(write: Write, kind: str) -> None:
    path = write(config())
    await run("rename", path, name="c", new_name="new", kind=kind, apply=True)
    found = load(path)
    context = found.contexts[found.current_context]
    assert context.cluster in found.clusters
    assert context.user in found.users
    assert "new" in getattr(found, f"{kind}s")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "the new name is missing"),
        ({"new_name": "c"}, 'a context "c" already exists'),
        ({"name": "x", "new_name": "y"}, 'there is no context "x"'),
        ({"kind": "user", "new_name": "y"}, 'there is no user ""'),
    ],
)
async def test_what_cannot_be_renamed(write: Write, more: Json, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        await run("rename", write(config()), **more)


async def test_extracting_and_inlining_are_each_others_undoing(
    write: Write, tmp_path: Path
) -> None:
    data = base64.b64encode(CA.encode()).decode()
    user = {"client-certificate-data": data, "client-key-data": data, "token": "t"}
    path = write(config(SERVER | {"certificate-authority-data": data}, user))
    out = tmp_path / "out"
    done = await run("extract", path, out=out, apply=True)
    names = ["c-ca.crt", "c-client.crt", "c-client.key", "c-token", "config"]
    assert inside(out) == names
    assert {mode(it.path) for it in done.outputs} == {0o600}
    assert "-data" not in (out / "config").read_text()
    assert not compare(path, out / "config")

    back = tmp_path / "back.yaml"
    await run("inline", out / "config", out=back, apply=True)
    found = load(back)
    assert found.clusters["c"].certificate_authority_data == CA.encode()
    assert (found.users["c"].token, found.users["c"].token_file) == ("t", "")
    assert not compare(path, back)


def two() -> Json:
    entries = [("a", "https://a"), ("b", "https://b")]
    return {
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in entries],
        "users": [{"name": name, "user": {"token": name}} for name, _ in entries],
        "contexts": [{"name": n, "context": {"cluster": n, "user": n}} for n, _ in entries],
        "current-context": "a",
    }


async def test_minifying_keeps_one_context(write: Write, tmp_path: Path) -> None:
    path = write(two())
    out = tmp_path / "b.yaml"
    await run("minify", path, context="b", out=out, apply=True)
    found = load(out)
    assert [list(it) for it in (found.contexts, found.clusters, found.users)] == [["b"]] * 3
    assert found.current_context == "b"
    with pytest.raises(UsageError, match='there is no context "x"'):
        await run("minify", path, context="x")


async def test_a_file_that_goes_elsewhere_takes_its_paths_along(
    write: Write, tmp_path: Path
) -> None:
    write(CA, "pki/ca.crt")
    path = write(config(SERVER | {"certificate-authority": "pki/ca.crt"}))
    out = tmp_path / "far" / "away.yaml"
    await run("minify", path, out=out, apply=True)
    assert load(out).clusters["c"].certificate_authority == str(tmp_path / "pki" / "ca.crt")


async def test_splitting_makes_a_file_for_each_context(write: Write, tmp_path: Path) -> None:
    content = two()
    content["contexts"][0]["name"] = "arn:aws:eks/prod"
    out = tmp_path / "out"
    await run("split", write(content), out=out, apply=True)
    assert inside(out) == ["arn-aws-eks-prod.yaml", "b.yaml"]
    assert load(out / "arn-aws-eks-prod.yaml").current_context == "arn:aws:eks/prod"


async def test_merging_loses_nothing(write: Write, tmp_path: Path) -> None:
    first = write(config(SERVER), "first.yaml")
    second = write(config({"server": "https://other"}, {"token": "other"}), "second.yaml")
    out = tmp_path / "out.yaml"
    done = await run("merge", first, second, first, out=out, apply=True)
    found = load(out)
    assert sorted(found.contexts) == ["c", "c-second"]
    context = found.contexts["c-second"]
    assert found.clusters[context.cluster].server == "https://other"
    assert found.users[context.user].token == "other"
    assert found.current_context == "c"
    assert len(done.notes) == 3


async def test_another_file_is_never_overwritten(write: Write) -> None:
    path, other = write(config()), write("precious", "other")
    with pytest.raises(UsageError, match="files are never overwritten"):
        await run("minify", path, out=other, apply=True)
    assert other.read_text() == "precious"


async def test_a_lock_is_respected(write: Write) -> None:
    path = write(config())
    before = path.read_bytes()
    write("", "config.lock")
    with pytest.raises(ConfigError, match="another program is writing"):
        await run("rename", path, new_name="x", apply=True)
    assert path.read_bytes() == before


async def test_nothing_to_change_is_nothing_to_write(write: Write, tmp_path: Path) -> None:
    path = write(config())
    done = await run("inline", path, apply=True)
    assert (done.applied, done.outputs) == (False, ())
    assert inside(tmp_path) == [path.name]


@pytest.mark.parametrize("strategy", ["merge", "extract", "split"])
async def test_what_makes_new_files_must_be_told_where(write: Write, strategy: str) -> None:
    with pytest.raises(UsageError, match="creates a new"):
        await run(strategy, write(config()))


async def test_one_file_at_a_time(write: Write) -> None:
    with pytest.raises(UsageError, match="converts one file, not 2"):
        await run("inline", write(config(), "a"), write(config(), "b"))


async def test_a_file_that_is_named_and_missing(write: Write) -> None:
    with pytest.raises(UsageError, match=r"ca\.crt cannot be read"):
        await run("inline", write(config(SERVER | {"certificate-authority": "ca.crt"})))


def plugin(write: Write, **status: str) -> Json:
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    script = write(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", "plugin")
    script.chmod(0o700)
    return {"exec": {"apiVersion": version, "command": str(script), "interactiveMode": "Never"}}


async def test_what_the_plugin_says_takes_its_place(write: Write) -> None:
    path = write(config(user=plugin(write, token="secret-token")))
    done = await run("exec-token", path, apply=True)
    user = load(path).users["c"]
    assert (user.exec, user.token) == (None, "secret-token")
    assert "secret-token" not in repr(done)
    assert "the credentials are not renewed" in done.notes[0]


async def test_a_user_without_a_plugin_has_nothing_to_run(write: Write) -> None:
    with pytest.raises(UsageError, match="does not log in with a credential plugin"):
        await run("exec-token", write(config()))


async def test_every_strategy_refuses_what_is_no_kubeconfig(write: Write, tmp_path: Path) -> None:
    options = ConvertOptions("inline", (write("kind: Pod"),), out=tmp_path / "out", new_name="x")
    for name in NAMES:
        with pytest.raises(ConfigError):
            await convert(AccessOptions(), replace(options, strategy=cast("Any", name)), {}, NOON)


async def test_without_a_file_there_is_nothing_to_convert(tmp_path: Path) -> None:
    for name in NAMES:
        with pytest.raises(ConfigError, match="there is no kubeconfig file to convert"):
            await run(name, out=tmp_path / "out")
