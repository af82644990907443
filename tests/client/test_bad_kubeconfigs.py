"""Every way a kubeconfig can be wrong, and the exact words its owner gets."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.errors import (
    EXIT_NO_CLUSTER,
    EXIT_USAGE,
    ConfigError,
    KvestigateError,
    NoCluster,
)

SECRET = "c3VwZXItc2VjcmV0"

PEM = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"
"""base64 of the first line of a PEM certificate, which is all that is checked this early."""


def kubeconfig(cluster: str = "server: https://h:6443", user: str = f"token: {SECRET}") -> str:
    return (
        "apiVersion: v1\n"
        "kind: Config\n"
        "current-context: dev\n"
        "contexts:\n"
        "- {name: dev, context: {cluster: c, user: u}}\n"
        "clusters:\n"
        f"- {{name: c, cluster: {{{cluster}}}}}\n"
        "users:\n"
        f"- {{name: u, user: {{{user}}}}}\n"
    )


def plugin(fields: str) -> str:
    return kubeconfig(user=f"exec: {{{fields}}}")


V1 = "apiVersion: client.authentication.k8s.io/v1"


class Bad(NamedTuple):
    id: str
    text: str
    message: str
    """`{file}` is the kubeconfig, `{dir}` its directory."""
    hint: str | None = None
    options: AccessOptions = AccessOptions()


TABLE = [
    Bad(
        "empty",
        "",
        "{file}: no contexts are defined, so no cluster is selected",
        "give another kubeconfig with --kubeconfig PATH",
    ),
    Bad(
        "not YAML: a tab",
        "clusters:\n\t- name: x\n",
        "{file}:2:1: not YAML: found character that cannot start any token",
        "fix the file at that place, or restore it",
    ),
    Bad(
        "not YAML: unclosed",
        f"users: [{{name: u, user: {{token: {SECRET}}}}}\n",
        "{file}:1:8: not YAML: did not find expected ',' or ']'",
        "fix the file at that place, or restore it",
    ),
    Bad(
        "a foreign tag",
        f"users: !!python/object:os.system\n  token: {SECRET}\n",
        "{file}:1:8: users must be a list, not a mapping",
        "write [a, b], or - a",
    ),
    Bad(
        "nested too deeply",
        "[" * 1_000_000,
        "{file}:1:999: not YAML: nested too deeply",
        "fix the file at that place, or restore it",
    ),
    Bad(
        "a list",
        "- apiVersion: v1\n",
        "{file}:1:1: not a kubeconfig: a mapping was expected, this is a list",
    ),
    Bad(
        "just text",
        "hello\n",
        "{file}:1:1: not a kubeconfig: a mapping was expected, this is text",
    ),
    Bad(
        "another kind",
        "apiVersion: v1\nkind: Pod\n",
        '{file}:2:7: kind is "Pod", a kubeconfig has "Config"',
        "give the path of a kubeconfig; a manifest is not one",
    ),
    Bad(
        "another version",
        "apiVersion: v2\nkind: Config\n",
        '{file}:1:13: apiVersion is "v2", a kubeconfig has "v1"',
    ),
    Bad(
        "clusters is a mapping",
        "clusters: {name: c}\n",
        "{file}:1:11: clusters must be a list, not a mapping",
        "write [a, b], or - a",
    ),
    Bad(
        "an entry is text",
        "users:\n- alice\n",
        "{file}:2:3: users[0] must be a mapping, not text",
        "write {name: value}",
    ),
    Bad(
        "an entry without a name",
        "users:\n- user: {token: x}\n",
        "{file}:2:3: an entry of users has no name",
    ),
    Bad(
        "a name twice",
        "users:\n- {name: u, user: {token: x}}\n- {name: u, user: {token: z}}\n",
        '{file}:3:19: user "u": the name is already taken at {file}:2:19',
        "rename or remove one of the two",
    ),
    Bad(
        "a token that kubectl reads as true",
        kubeconfig(user="token: y"),
        '{file}:9:27: user "u": token must be text, not a boolean',
        "put it in quotes",
    ),
    Bad(
        "a token that is a number",
        kubeconfig(user="token: 12345678"),
        '{file}:9:27: user "u": token must be text, not a number',
        "put it in quotes",
    ),
    Bad(
        "a flag that is text",
        kubeconfig("server: https://h, insecure-skip-tls-verify: 'yes'"),
        '{file}:7:68: cluster "c": insecure-skip-tls-verify must be true or false, not text',
    ),
    Bad(
        "current-context unset",
        "contexts:\n- {name: dev, context: {}}\n- {name: prod, context: {}}\n",
        "{file}: current-context is not set",
        "choose with --context NAME, or for good: kubectl config use-context NAME; "
        "contexts: dev, prod",
    ),
    Bad(
        "current-context dangling",
        "current-context: prdo\n"
        "contexts:\n- {name: dev, context: {}}\n- {name: prod, context: {}}\n",
        '{file}:1:18: current-context is "prdo", but there is no such context',
        'did you mean "prod"? contexts: dev, prod',
    ),
    Bad(
        "--context dangling",
        kubeconfig(),
        '--context: there is no context "staging" ({file})',
        "contexts: dev",
        AccessOptions(context="staging"),
    ),
    Bad(
        "--cluster dangling",
        kubeconfig(),
        '--cluster: there is no cluster "d"',
        "clusters: c",
        AccessOptions(cluster="d"),
    ),
    Bad(
        "--user dangling",
        kubeconfig(),
        '--user: there is no user "root"',
        "users: u",
        AccessOptions(user="root"),
    ),
    Bad(
        "the context names a missing cluster",
        "current-context: a\ncontexts:\n- {name: a, context: {cluster: kind, user: u}}\n"
        "clusters:\n- {name: kind-kind, cluster: {server: https://h}}\n",
        '{file}:3:32: context "a": there is no cluster "kind"',
        'did you mean "kind-kind"? clusters: kind-kind',
    ),
    Bad(
        "the context names no cluster",
        "current-context: a\ncontexts:\n- {name: a, context: {user: u}}\n",
        '{file}:3:22: context "a": it names no cluster',
        "the kubeconfig has no clusters",
    ),
    Bad(
        "the context names a missing user",
        "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
        "clusters:\n- {name: c, cluster: {server: https://h}}\n",
        '{file}:3:41: context "a": there is no user "u"',
        "the kubeconfig has no users",
    ),
    Bad(
        "no server",
        kubeconfig("tls-server-name: x"),
        '{file}:7:22: cluster "c": it has no server',
        "set it with: kubectl config set-cluster c --server=https://HOST:PORT",
    ),
    Bad(
        "server with a bad scheme",
        kubeconfig("server: ftp://h"),
        '{file}:7:31: cluster "c": server is not usable: '
        'the scheme is "ftp", it must be https or http',
        "write it as https://HOST:PORT",
    ),
    Bad(
        "server with a bad port",
        kubeconfig("server: https://h:99999"),
        '{file}:7:31: cluster "c": server is not usable: the port is not a number from 0 to 65535',
        "write it as https://HOST:PORT",
    ),
    Bad(
        "server without a host",
        kubeconfig("server: https://"),
        '{file}:7:31: cluster "c": server is not usable: it names no host',
        "write it as https://HOST:PORT",
    ),
    Bad(
        "server with a password",
        kubeconfig(f"server: https://admin:{SECRET}@h"),
        '{file}:7:31: cluster "c": server is not usable: '
        "it must not carry a user name or password; put them into the user entry",
        "write it as https://HOST:PORT",
    ),
    Bad(
        "proxy-url with a bad scheme",
        kubeconfig(f"server: https://h, proxy-url: ftp://me:{SECRET}@proxy"),
        '{file}:7:53: cluster "c": proxy-url is not usable: '
        'the scheme is "ftp", it must be http, https or socks5',
    ),
    Bad(
        "bad base64",
        kubeconfig("server: https://h, certificate-authority-data: '%%%'"),
        '{file}:7:70: cluster "c": certificate-authority-data is not base64',
        "encode it with: base64 -w0 FILE, into certificate-authority-data",
    ),
    Bad(
        "an authority that is no certificate",
        kubeconfig(f"server: https://h, certificate-authority-data: {SECRET}"),
        '{file}:7:70: cluster "c": certificate-authority-data holds no PEM certificate',
    ),
    Bad(
        "an authority file that is not there",
        kubeconfig("server: https://h, certificate-authority: pki/ca.crt"),
        '{file}:7:65: cluster "c": certificate-authority {dir}/pki/ca.crt cannot be read: '
        "No such file or directory",
    ),
    Bad(
        "an authority twice",
        kubeconfig(
            f"server: https://h, certificate-authority-data: {PEM}, certificate-authority: ca.crt"
        ),
        '{file}:7:131: cluster "c": '
        "both certificate-authority and certificate-authority-data are set",
        "remove one of the two, as for kubectl",
    ),
    Bad(
        "an authority and insecure",
        kubeconfig(
            f"server: https://h, insecure-skip-tls-verify: true, certificate-authority-data: {PEM}"
        ),
        '{file}:7:68: cluster "c": '
        "insecure-skip-tls-verify is true although there is a certificate authority",
        "remove insecure-skip-tls-verify to check the server against the authority",
    ),
    Bad(
        "a certificate without its key",
        kubeconfig(user=f"client-certificate-data: {PEM}"),
        '{file}:9:45: user "u": it has a client certificate without its key',
        "set client-key-data or client-key",
    ),
    Bad(
        "a certificate twice",
        kubeconfig(
            user=f"client-certificate: a, client-certificate-data: {PEM}, client-key-data: {SECRET}"
        ),
        '{file}:9:40: user "u": both client-certificate and client-certificate-data are set',
        "remove one of the two, as for kubectl",
    ),
    Bad(
        "a key file that is not there",
        kubeconfig(user=f"client-certificate-data: {PEM}, client-key: /nowhere/key"),
        '{file}:9:95: user "u": client-key /nowhere/key cannot be read: No such file or directory',
    ),
    Bad(
        "a token file that is not there",
        kubeconfig(user="tokenFile: token"),
        '{file}:9:31: user "u": tokenFile {dir}/token cannot be read: No such file or directory',
    ),
    Bad(
        "a token and a password",
        kubeconfig(user=f"token: {SECRET}, username: me, password: {SECRET}"),
        '{file}:9:27: user "u": it has both a token and a password, and only one can be sent',
        "remove token, or username and password",
    ),
    Bad(
        "groups without a user to impersonate",
        kubeconfig(user=f"token: {SECRET}, as-groups: [g]"),
        '{file}:9:56: user "u": as-groups is set without as, the user to impersonate',
    ),
    Bad(
        "exec without a command",
        plugin(f"{V1}, interactiveMode: Never"),
        '{file}:9:26: user "u": exec has no command',
        "name the credential plugin to run",
    ),
    Bad(
        "exec without a version",
        plugin("command: x, interactiveMode: Never"),
        '{file}:9:26: user "u": exec.apiVersion is missing, it must be one of '
        "client.authentication.k8s.io/v1, client.authentication.k8s.io/v1beta1",
        "update the plugin and write its kubeconfig anew",
    ),
    Bad(
        "exec with a version of the past",
        plugin("command: x, apiVersion: client.authentication.k8s.io/v1alpha1"),
        '{file}:9:51: user "u": exec.apiVersion is "client.authentication.k8s.io/v1alpha1", '
        "it must be one of client.authentication.k8s.io/v1, client.authentication.k8s.io/v1beta1",
        "update the plugin and write its kubeconfig anew",
    ),
    Bad(
        "exec without a mode",
        plugin(f"command: x, {V1}"),
        '{file}:9:26: user "u": exec.interactiveMode is missing, which v1 requires; '
        "it is one of Never, IfAvailable, Always",
        "set interactiveMode: IfAvailable",
    ),
    Bad(
        "exec with an unknown mode",
        plugin(f"command: x, interactiveMode: Sometimes, {V1}"),
        '{file}:9:56: user "u": exec.interactiveMode is "Sometimes"; '
        "it is one of Never, IfAvailable, Always",
        "set interactiveMode: IfAvailable",
    ),
    Bad(
        "exec with a nameless variable",
        plugin(f"command: x, interactiveMode: Never, env: [{{value: {SECRET}}}], {V1}"),
        '{file}:9:68: user "u": exec.env has an entry without a name',
    ),
    Bad(
        "exec and auth-provider",
        kubeconfig(
            user=f"exec: {{command: x, interactiveMode: Never, {V1}}}, "
            "auth-provider: {name: oidc}"
        ),
        '{file}:9:26: user "u": it has both exec and auth-provider',
        "remove one",
    ),
    Bad(
        "the gcp provider",
        kubeconfig(user="auth-provider: {name: gcp}"),
        '{file}:9:42: user "u": auth-provider "gcp" is no longer supported by Kubernetes',
        "install gke-gcloud-auth-plugin, then: gcloud container clusters get-credentials NAME",
    ),
    Bad(
        "an unknown provider",
        kubeconfig(user="auth-provider: {name: openstack}"),
        '{file}:9:42: user "u": auth-provider "openstack" is no longer supported by Kubernetes',
        "use a credential plugin: the exec field",
    ),
    Bad(
        "oidc without an issuer",
        kubeconfig(user=f"auth-provider: {{name: oidc, config: {{client-secret: {SECRET}}}}}"),
        '{file}:9:56: user "u": auth-provider oidc needs idp-issuer-url',
    ),
]


@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.id)
def test_a_bad_kubeconfig_gets_these_words(bad: Bad, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(bad.text)
    with pytest.raises(ConfigError) as caught:
        resolve(bad.options, {"KUBECONFIG": str(file)}, tmp_path, service_account=tmp_path)
    error = caught.value
    expected = bad.message.replace("{file}", str(file)).replace("{dir}", str(tmp_path))
    assert (error.message, error.hint) == (expected, bad.hint)
    assert error.exit_code == EXIT_NO_CLUSTER
    assert SECRET not in f"{error.message} {error.hint} {error!r}"


class Unusable(NamedTuple):
    """What is wrong beside the content of a file."""

    id: str
    options: AccessOptions
    environ: dict[str, str]
    message: str
    hint: str | None
    exit_code: int


ELSEWHERE = [
    Unusable(
        "nothing at all",
        AccessOptions(),
        {},
        "no cluster to talk to: no file {dir}/.kube/config, KUBECONFIG is not set, "
        "and this is not a pod",
        "name a kubeconfig with --kubeconfig PATH or KUBECONFIG",
        EXIT_NO_CLUSTER,
    ),
    Unusable(
        "KUBECONFIG points nowhere",
        AccessOptions(),
        {"KUBECONFIG": "/nowhere/a:/nowhere/b"},
        "KUBECONFIG names no file that exists: /nowhere/a, /nowhere/b",
        "correct or unset KUBECONFIG, or give --kubeconfig PATH",
        EXIT_NO_CLUSTER,
    ),
    Unusable(
        "--kubeconfig points nowhere",
        AccessOptions(kubeconfig="/nowhere/a"),
        {},
        "/nowhere/a: no such kubeconfig file",
        "check the path, or leave it out",
        EXIT_NO_CLUSTER,
    ),
    Unusable(
        "--kubeconfig is a directory",
        AccessOptions(kubeconfig="/"),
        {},
        "/: a directory, not a kubeconfig file",
        None,
        EXIT_NO_CLUSTER,
    ),
    Unusable(
        "--server is no URL",
        AccessOptions(server="gopher://h"),
        {},
        '--server: not usable: the scheme is "gopher", it must be https or http',
        "write it as https://HOST:PORT",
        EXIT_USAGE,
    ),
    Unusable(
        "--certificate-authority points nowhere",
        AccessOptions(server="https://h", ca_file="/nowhere/ca"),
        {},
        "/nowhere/ca: the certificate authority cannot be read: No such file or directory",
        None,
        EXIT_USAGE,
    ),
    Unusable(
        "flags that contradict each other",
        AccessOptions(server="https://h", ca_file="/ca", insecure_skip_tls_verify=True),
        {},
        "--insecure-skip-tls-verify contradicts --certificate-authority",
        None,
        EXIT_USAGE,
    ),
    Unusable(
        "--as-group without --as",
        AccessOptions(server="https://h", as_groups=("g",)),
        {},
        "--as-group needs --as, the user to impersonate",
        None,
        EXIT_USAGE,
    ),
    Unusable(
        "HTTPS_PROXY with a bad scheme",
        AccessOptions(server="https://h"),
        {"HTTPS_PROXY": f"gopher://me:{SECRET}@proxy"},
        'HTTPS_PROXY is not usable: the scheme is "gopher", it must be http, https or socks5',
        "correct or unset it, or put h into NO_PROXY",
        EXIT_NO_CLUSTER,
    ),
]


@pytest.mark.parametrize("bad", ELSEWHERE, ids=lambda bad: bad.id)
def test_what_is_wrong_elsewhere_gets_these_words(bad: Unusable, tmp_path: Path) -> None:
    with pytest.raises(KvestigateError) as caught:
        resolve(bad.options, bad.environ, tmp_path, service_account=tmp_path)
    error = caught.value
    expected = bad.message.replace("{dir}", str(tmp_path))
    assert (error.message, error.hint, error.exit_code) == (expected, bad.hint, bad.exit_code)
    assert SECRET not in error.message


def test_having_nothing_is_told_apart_from_having_something_broken(tmp_path: Path) -> None:
    with pytest.raises(NoCluster) as caught:
        resolve(AccessOptions(), {}, tmp_path, service_account=tmp_path)
    assert not isinstance(caught.value, ConfigError)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe\x00", "{file}:1:1: not YAML: not text: byte 0xff is not UTF-8"),
        (b"a: \x00", "{file}:1:4: not YAML: a control character that YAML forbids"),
        (b"users: " + b"1" * 5000, "{file}:1:8: users must be a list, not text"),
    ],
)
def test_a_file_of_bytes_is_no_kubeconfig(data: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        resolve(AccessOptions(kubeconfig=str(file)), {}, None)
    assert caught.value.message == message.replace("{file}", str(file))
