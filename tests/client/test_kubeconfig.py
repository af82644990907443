"""Kubeconfig values: what is read, from where, and who wins when files are merged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.client.kubeconfig import (
    alternatives,
    load,
    load_all,
    merge,
    parse_config,
    split_paths,
)
from kvestigate.errors import ConfigError

FULL = """
apiVersion: v1
kind: Config
preferences: {}
current-context: dev
contexts:
- name: dev
  context: {cluster: c, user: u, namespace: web}
clusters:
- name: c
  cluster:
    server: https://h:6443
    certificate-authority: pki/ca.crt
    certificate-authority-data: Y2E=
    insecure-skip-tls-verify: true
    tls-server-name: api
    proxy-url: socks5://proxy
    disable-compression: true
users:
- name: u
  user:
    client-certificate: ../u.crt
    client-certificate-data: Y2VydA==
    client-key: /abs/u.key
    client-key-data: a2V5
    token: topsecret-token
    tokenFile: token
    username: me
    password: topsecret-password
    as: alice
    as-uid: "7"
    as-groups: [a, b]
    as-user-extra: {scopes: [x, z]}
    auth-provider:
      name: oidc
      config: {client-secret: topsecret-client, since: 2024-01-01}
    exec:
      command: ./plugin
      args: [--password, topsecret-arg]
      env: [{name: A, value: topsecret-env}]
      apiVersion: client.authentication.k8s.io/v1beta1
      installHint: get it
      provideClusterInfo: true
"""


def test_every_field_is_read_and_paths_start_at_the_file() -> None:
    config = parse_config("/home/me/.kube/config", FULL.encode())
    context, cluster, user = config.contexts["dev"], config.clusters["c"], config.users["u"]
    assert config.current_context == context.name == "dev"
    assert config.current_context_where == "/home/me/.kube/config:5:18"
    assert (context.cluster, context.user, context.namespace) == ("c", "u", "web")
    assert (cluster.server, cluster.tls_server_name) == ("https://h:6443", "api")
    assert cluster.certificate_authority == "/home/me/.kube/pki/ca.crt"
    assert cluster.certificate_authority_data == b"ca"
    assert cluster.insecure_skip_tls_verify
    assert cluster.disable_compression
    assert cluster.proxy_url == "socks5://proxy"
    assert (user.client_certificate, user.client_certificate_data) == ("/home/me/u.crt", b"cert")
    assert (user.client_key, user.client_key_data) == ("/abs/u.key", b"key")
    assert (user.token, user.token_file) == ("topsecret-token", "/home/me/.kube/token")
    assert (user.username, user.password) == ("me", "topsecret-password")
    assert (user.as_user, user.as_uid, user.as_groups) == ("alice", "7", ("a", "b"))
    assert user.as_user_extra == {"scopes": ("x", "z")}
    assert user.auth_provider is not None
    assert user.auth_provider.name == "oidc"
    assert user.auth_provider.config["since"] == "2024-01-01"
    assert user.exec is not None
    assert user.exec.command == "/home/me/.kube/plugin"
    assert user.exec.args == ("--password", "topsecret-arg")
    assert user.exec.env == (("A", "topsecret-env"),)
    assert user.exec.provide_cluster_info
    assert user.exec.interactive_mode == "IfAvailable"
    assert user.file == Path("/home/me/.kube/config")


def test_no_secret_is_in_a_repr() -> None:
    config = parse_config("/home/me/.kube/config", FULL.encode())
    text = repr(config) + str(config.users) + repr(config.clusters)
    assert 'User(user "u")' in text
    assert "topsecret" not in text
    assert repr(b"key") not in text


def test_a_bare_command_is_left_to_the_path() -> None:
    text = "users: [{name: u, user: {exec: {command: aws}}}]"
    plugin = parse_config("/x/config", text.encode()).users["u"].exec
    assert plugin is not None
    assert plugin.command == "aws"


@pytest.mark.parametrize(
    ("version", "mode"),
    [("v1", ""), ("v1beta1", "IfAvailable"), ("v1alpha1", "IfAvailable")],
)
def test_only_old_plugins_have_a_default_mode(version: str, mode: str) -> None:
    group = "client.authentication.k8s.io"
    text = f"users: [{{name: u, user: {{exec: {{command: x, apiVersion: {group}/{version}}}}}}}]"
    plugin = parse_config("f", text.encode()).users["u"].exec
    assert plugin is not None
    assert plugin.interactive_mode == mode


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "{}", "kind: Config", "clusters:\nusers: null\n", "---\n{}\n---\n: [\n"],
)
def test_what_is_missing_is_empty(text: str) -> None:
    config = parse_config("f", text.encode())
    found = (config.clusters, config.users, config.contexts, config.current_context)
    assert found == ({}, {}, {}, "")
    assert config.files == (Path("f"),)


def test_json_is_a_kubeconfig_too() -> None:
    text = '{"clusters": [{"name": "c", "cluster": {"server": "https://h"}}]}'
    assert parse_config("f", text.encode()).clusters["c"].server == "https://h"


ONE = """
current-context: ''
users: [{name: red, user: {token: one}}]
contexts: [{name: a, context: {cluster: x}}]
"""
TWO = """
current-context: b
users: [{name: red, user: {token: two, as: alice}}, {name: blue, user: {tokenFile: t}}]
contexts: [{name: a, context: {cluster: z, namespace: m}}, {name: b, context: {}}]
"""
THREE = "current-context: c\nclusters: [{name: k, cluster: {certificate-authority: ca}}]"


def test_the_first_to_define_a_name_wins_as_a_whole() -> None:
    merged = merge(
        parse_config(file, text.encode())
        for file, text in (("/1/c", ONE), ("/2/c", TWO), ("/3/c", THREE))
    )
    assert (merged.users["red"].token, merged.users["red"].as_user) == ("one", "")
    assert (merged.contexts["a"].cluster, merged.contexts["a"].namespace) == ("x", "")
    assert list(merged.users) == ["red", "blue"]
    assert (merged.current_context, merged.current_context_where) == ("b", "/2/c:2:18")
    assert merged.users["blue"].token_file == "/2/t"
    assert merged.clusters["k"].certificate_authority == "/3/ca"
    assert merged.files == (Path("/1/c"), Path("/2/c"), Path("/3/c"))


def test_missing_files_are_skipped_but_broken_ones_are_not(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(TWO)
    bad.write_text("[")
    assert load_all([tmp_path / "none", good, good]).files == (good,)
    with pytest.raises(ConfigError, match="bad:2:1: not YAML"):
        load_all([good, bad])


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    # The refusal that even root gets.
    below = tmp_path / "config" / "below"
    below.parent.touch()
    with pytest.raises(ConfigError) as caught:
        load(below)
    assert caught.value.message == f"{below}: cannot be read: Not a directory"


@pytest.mark.parametrize(
    ("variable", "paths"),
    [
        ("/a", ["/a"]),
        (f"/a{os.pathsep}b", ["/a", "b"]),
        (f"{os.pathsep}/a{os.pathsep}{os.pathsep}/a", ["/a"]),
        (os.pathsep, []),
    ],
)
def test_the_variable_is_a_list_of_paths(variable: str, paths: list[str]) -> None:
    assert split_paths(variable) == [Path(path) for path in paths]


@pytest.mark.parametrize(
    ("wanted", "names", "hint"),
    [
        ("prdo", ["dev", "prod"], 'did you mean "prod"? contexts: dev, prod'),
        ("x", ["dev"], "contexts: dev"),
        ("x", [], "the kubeconfig has no contexts"),
        (
            "x",
            [f"n{index:02}" for index in range(12)],
            "contexts: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 and 2 more",
        ),
    ],
)
def test_a_hint_names_what_there_is(wanted: str, names: list[str], hint: str) -> None:
    assert alternatives(wanted, names, "contexts") == hint


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_KEYS = st.sampled_from(
    [
        *("name", "user", "users", "clusters", "cluster", "contexts", "context", "config"),
        *("exec", "env", "args", "token", "server", "as-user-extra", "auth-provider"),
        "certificate-authority-data",
    ]
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_KEYS, _VALUES))
def test_any_structure_is_a_kubeconfig_or_a_config_error(value: object) -> None:
    import yaml

    try:
        parse_config("f", yaml.safe_dump(value).encode())
    except ConfigError as error:
        assert error.message.startswith("f:")  # noqa: PT017  # both outcomes are right


@given(st.binary() | st.text(alphabet="[]{}:-,&*!|>'\"\n \ta1?%@#").map(str.encode))
def test_any_bytes_are_a_kubeconfig_or_a_config_error(data: bytes) -> None:
    try:
        parse_config("f", data)
    except ConfigError as error:
        assert error.message.startswith("f:")  # noqa: PT017  # both outcomes are right
