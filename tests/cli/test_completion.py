"""`kvestigate completion` and what the shell asks with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_our_program(invoke: Invoke, shell: str) -> None:
    outcome = invoke("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert "_KVESTIGATE_COMPLETE" in outcome.out
    assert f"{shell}_complete" in outcome.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to judge the script")
def test_bash_accepts_the_script(invoke: Invoke) -> None:
    script = invoke("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("kvestigate deb", "plain,debug"),
        ("kvestigate debug con", "plain,context"),
        ("kvestigate completion z", "plain,zsh"),
        ("kvestigate debug context --out", "plain,--output"),
        ("kvestigate -o ", "plain,table\nplain,wide\nplain,json\nplain,yaml"),
    ],
)
def test_words_are_completed(words: str, offered: str) -> None:
    environ = {
        **os.environ,
        "_KVESTIGATE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "kvestigate"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == offered
