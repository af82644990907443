"""Credential plugins, each a real program that the test writes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from kvestigate.client.auth.execplugin import ExecPlugin, printable
from kvestigate.client.auth.interface import Credential, ExecCluster
from kvestigate.client.kubeconfig import parse_config
from kvestigate.errors import ConfigError, DeadlineExceeded, KvestigateError
from tests.client.identities import SetClock, make_certificate, make_token

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
CLUSTER = ExecCluster("https://h:6443")

MakePlugin = Callable[..., ExecPlugin]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def make_plugin(tmp_path: Path, clock: SetClock) -> MakePlugin:
    """Writes `body`, Python, as an executable and makes the credentials that run it.

    In `body`, `answer(**status)` prints an ExecCredential and `runs` counts the runs so far.
    """

    def make(
        body: str,
        *,
        version: str = V1,
        mode: str = "Never",
        cluster: ExecCluster = CLUSTER,
        terminal: bool = False,
        timeout: float = 30,
        **fields: object,
    ) -> ExecPlugin:
        script = tmp_path / "plugin"
        script.write_text(
            f"#!{sys.executable}\n"
            + textwrap.dedent(f"""
            import json, os, sys, time
            with open({str(tmp_path / "runs")!r}, "a+") as log:
                log.write("x")
                log.flush()
                log.seek(0)
                runs = len(log.read())
            def answer(**status):
                print(json.dumps(dict(
                    kind="ExecCredential", apiVersion={version!r}, status=status)))
            """)
            + textwrap.dedent(body)
        )
        script.chmod(0o755)
        user = {"command": "./plugin", "apiVersion": version, "interactiveMode": mode} | fields
        config = {"users": [{"name": "u", "user": {"exec": user}}]}
        plugin = parse_config(str(tmp_path / "config"), json.dumps(config).encode())
        parsed = plugin.users["u"].exec
        assert parsed is not None
        return ExecPlugin(
            parsed,
            user="u",
            cluster=cluster,
            environ={"PATH": os.environ["PATH"], "INHERITED": "yes"},
            now=clock,
            is_terminal=lambda: terminal,
            timeout=timeout,
        )

    return make


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[], int]:
    return lambda: len((tmp_path / "runs").read_text())


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_token_without_expiry_is_kept(
    version: str, make_plugin: MakePlugin, runs: Callable[[], int], clock: SetClock
) -> None:
    plugin = make_plugin("answer(token=f'token-{runs}')", version=version)
    assert await plugin.current() == Credential(token="token-1")
    clock.advance(10**6)
    assert await plugin.current() == Credential(token="token-1")
    assert runs() == 1


async def test_an_expired_token_is_renewed(make_plugin: MakePlugin, clock: SetClock) -> None:
    plugin = make_plugin(
        "answer(token=f'token-{runs}', expirationTimestamp=f'2030-01-01T1{1 + runs}:01:00Z')"
    )
    assert (await plugin.current()).token == "token-1"
    clock.advance(60)
    assert (await plugin.current()).token == "token-1"
    clock.advance(1)
    assert (await plugin.current()).token == "token-2"


async def test_a_rejected_token_is_renewed_once(
    make_plugin: MakePlugin, runs: Callable[[], int]
) -> None:
    plugin = make_plugin("answer(token=f'token-{runs}')")
    used = await plugin.current()
    # Ten requests were in flight with the same token, and all are told 401.
    assert all(await asyncio.gather(*(plugin.rejected(used) for _ in range(10))))
    assert (await plugin.current()).token == "token-2"
    assert runs() == 2


async def test_a_plugin_that_only_repeats_itself_is_not_worth_a_retry(
    make_plugin: MakePlugin,
) -> None:
    plugin = make_plugin("answer(token='same')")
    assert not await plugin.rejected(await plugin.current())


async def test_many_callers_share_one_process(
    make_plugin: MakePlugin, runs: Callable[[], int]
) -> None:
    plugin = make_plugin("answer(token=f'token-{runs}')")
    found = await asyncio.gather(*(plugin.current() for _ in range(20)))
    assert {credential.token for credential in found} == {"token-1"}
    assert runs() == 1


async def test_a_certificate_comes_with_its_key(make_plugin: MakePlugin, clock: SetClock) -> None:
    certificate, key = make_certificate("jane")
    plugin = make_plugin(
        f"answer(clientCertificateData={certificate.decode()!r}, clientKeyData={key.decode()!r})"
    )
    assert await plugin.current() == Credential(certificate=certificate, key=key)
    assert plugin.describe().endswith(
        "plugin: client certificate O=system:masters,CN=jane, expires 2031-01-01 00:00 UTC"
    )


ECHO = """
heard = dict(args=sys.argv[1:], env=dict(os.environ), input=sys.stdin.read())
answer(token=json.dumps(heard))
"""


async def told(plugin: ExecPlugin) -> dict[str, object]:
    token = (await plugin.current()).token
    assert token is not None
    answer: dict[str, object] = json.loads(token)
    return answer


async def test_a_plugin_gets_its_arguments_variables_and_no_input(make_plugin: MakePlugin) -> None:
    env = [{"name": "MINE", "value": "1"}]
    heard = await told(make_plugin(ECHO, args=["get-token", "--x"], env=env))
    assert heard["args"] == ["get-token", "--x"]
    assert heard["input"] == ""
    environ = heard["env"]
    assert isinstance(environ, dict)
    assert (environ["MINE"], environ["INHERITED"]) == ("1", "yes")
    assert json.loads(environ["KUBERNETES_EXEC_INFO"]) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }


@pytest.mark.parametrize(
    ("cluster", "info"),
    [
        (CLUSTER, {"server": "https://h:6443", "config": None}),
        (
            ExecCluster("https://h", "api", True, b"ca", "http://p", True, {"audience": "x"}),
            {
                "server": "https://h",
                "tls-server-name": "api",
                "insecure-skip-tls-verify": True,
                "certificate-authority-data": "Y2E=",
                "proxy-url": "http://p",
                "disable-compression": True,
                "config": {"audience": "x"},
            },
        ),
    ],
)
async def test_a_plugin_that_asks_is_told_about_the_cluster(
    cluster: ExecCluster, info: dict[str, object], make_plugin: MakePlugin
) -> None:
    heard = await told(make_plugin(ECHO, cluster=cluster, provideClusterInfo=True))
    environ = heard["env"]
    assert isinstance(environ, dict)
    assert json.loads(environ["KUBERNETES_EXEC_INFO"])["spec"]["cluster"] == info


INTERACTIVE = """
spec = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]
answer(token="yes" if spec["interactive"] else "no")
"""


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [
        ("Never", True, "no"),
        ("Never", False, "no"),
        ("IfAvailable", True, "yes"),
        ("IfAvailable", False, "no"),
        ("Always", True, "yes"),
    ],
)
async def test_the_mode_decides_about_the_terminal(
    mode: str, terminal: bool, interactive: str, make_plugin: MakePlugin
) -> None:
    plugin = make_plugin(INTERACTIVE, mode=mode, terminal=terminal)
    assert (await plugin.current()).token == interactive


NAME = 'credential plugin "{dir}/plugin" of user "u"'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("print('topsecret')", "it did not print an ExecCredential as JSON"),
        ("print('[\"topsecret\"]')", "it did not print an ExecCredential as JSON"),
        ("sys.stdout.buffer.write(b'\\xff')", "it did not print an ExecCredential as JSON"),
        ("answer(token=['topsecret'])", "it did not print an ExecCredential as JSON"),
        (
            "answer(token='topsecret', expirationTimestamp='tomorrow')",
            "it did not print an ExecCredential as JSON",
        ),
        (
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion={V1!r})))",
            "the ExecCredential has no status",
        ),
        (
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion={V1BETA1!r})))",
            f"the kubeconfig says {V1}, it answered {V1BETA1}",
        ),
        ("answer()", "the status has neither a token nor a certificate and key"),
        (
            "answer(token='topsecret', clientKeyData='topsecret')",
            "the status has a certificate or a key, but not both",
        ),
        ("sys.exit(3)", "failed with exit code 3"),
        (
            "print('topsecret'); sys.exit('please \\x1b[1mlog in\\x1b[0m\\nfirst')",
            "failed with exit code 1: please U+001B[1mlog inU+001B[0m\nfirst",
        ),
        ("os.kill(os.getpid(), 9)", "failed with exit code -9"),
    ],
)
async def test_a_failing_plugin_is_explained_without_its_output(
    body: str, message: str, make_plugin: MakePlugin, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        await make_plugin(body).current()
    assert caught.value.message == f"{NAME.format(dir=tmp_path)}: {message}"
    assert "topsecret" not in repr(caught.value)


async def test_a_plugin_that_needs_a_terminal_says_so(
    make_plugin: MakePlugin, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        await make_plugin("answer(token='x')", mode="Always").current()
    assert caught.value.message == (
        f"{NAME.format(dir=tmp_path)}: its interactiveMode is Always, "
        "but standard input is no terminal"
    )


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"installHint": "brew install \x1b[1mit"}, "brew install U+001B[1mit"),
        ({}, "install no-such-plugin, or put it on the PATH"),
    ],
)
async def test_a_missing_plugin_shows_how_to_get_it(
    fields: dict[str, str], hint: str, make_plugin: MakePlugin
) -> None:
    with pytest.raises(ConfigError) as caught:
        await make_plugin("", command="no-such-plugin", **fields).current()
    assert caught.value.message == 'credential plugin "no-such-plugin" of user "u": not found'
    assert caught.value.hint == hint


async def test_a_file_that_is_no_program_says_so(make_plugin: MakePlugin, tmp_path: Path) -> None:
    plugin = make_plugin("")
    (tmp_path / "plugin").chmod(0o644)
    with pytest.raises(ConfigError, match="cannot be run: Permission denied"):
        await plugin.current()


async def test_a_plugin_that_hangs_is_stopped_with_its_children(
    make_plugin: MakePlugin, tmp_path: Path
) -> None:
    """The child holds our end of the pipe: only its death lets the call return."""
    plugin = make_plugin("import subprocess\nsubprocess.run(['sleep', '1000'])", timeout=0.5)
    with pytest.raises(DeadlineExceeded) as caught:
        await plugin.current()
    assert caught.value.message == (
        f"{NAME.format(dir=tmp_path)}: no answer within 0.5 s, so it was stopped"
    )


async def test_a_cancelled_caller_leaves_no_process_and_no_lock(
    make_plugin: MakePlugin, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    plugin = make_plugin(
        f"""
        if runs == 1:
            open({str(fifo)!r}, 'w').write(str(os.getpid()))
            time.sleep(1000)
        answer(token='second')
        """
    )
    first = asyncio.create_task(plugin.current())
    pid = int(await asyncio.to_thread(fifo.read_text))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (await plugin.current()).token == "second"


async def test_a_failure_is_not_remembered(make_plugin: MakePlugin) -> None:
    plugin = make_plugin("answer(token='later') if runs > 1 else sys.exit(1)")
    with pytest.raises(KvestigateError):
        await plugin.current()
    assert (await plugin.current()).token == "later"


async def test_the_description_tells_what_the_plugin_gave(
    make_plugin: MakePlugin, tmp_path: Path
) -> None:
    plugin = make_plugin(f"answer(token={make_token(sub='jane', expires_in=3600)!r})")
    assert plugin.describe() == f"credential plugin {tmp_path}/plugin"
    await plugin.current()
    assert plugin.describe() == (
        f"credential plugin {tmp_path}/plugin: bearer token of jane, expires 2030-01-01 13:00 UTC"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\tb\r\nc", "a\tb\nc"), ("\x1b]0;x\x07", "U+001B]0;xU+0007"), ("é漢", "é漢")],
)
def test_nothing_shown_can_drive_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
