"""What is handed to agents stands alone, and nothing that a server says becomes code in it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvestigate import catalog
from kvestigate.cybernet.agent_module import agent_module
from kvestigate.cybernet.parameters import schema
from kvestigate.cybernet.registry import exposable
from kvestigate.errors import InputError

OPERATIONS = catalog.operations()


def info(*names: str, **more: Any) -> dict[str, Any]:
    known = exposable(OPERATIONS)
    return {
        "name": "pool",
        "operations": [
            {"name": name, "summary": known[name].summary, "parameters": schema(known[name], {})}
            for name in names
        ],
        **more,
    }


EVERYTHING = info(*exposable(OPERATIONS))
READS = info("report.run", "pods")


@pytest.mark.parametrize("told", [EVERYTHING, READS, info()], ids=["all", "reads", "nothing"])
def test_the_module_is_clean(told: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "agent_helper.py"
    path.write_text(agent_module("http://localhost:8765", told))
    for words in (["check", "--select", "E,F,I,W,B,UP"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--isolated", "--line-length=100", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_operations_come_first_with_what_their_parameters_mean() -> None:
    source = agent_module("http://x", EVERYTHING)
    names = [it.name for it in ast.parse(source).body if isinstance(it, ast.FunctionDef)]
    assert names[:2] == ["new_job", "audit"]
    assert len(names) == len(set(names)), "nothing below replaces an operation"
    before, _, _ = source.partition("# What follows carries these out")
    assert "def workspace_put_text(" in before
    assert "        text: All that will be in the file." in before
    assert "class CybernetClient" not in before


def functions(source: str) -> set[str]:
    return {it.name for it in ast.parse(source).body if isinstance(it, ast.FunctionDef)}


def test_there_is_a_function_for_each_operation_and_one_for_jobs() -> None:
    made = functions(agent_module("http://x", EVERYTHING))
    assert {"report_run", "workspace_create", "workspace_destroy", "new_job", "client"} <= made


def test_a_cyberspace_that_allows_no_jobs_gets_none() -> None:
    source = agent_module("http://x", READS)
    assert "new_job" not in functions(source)
    assert "DistributedJob" not in source


def test_it_needs_nothing_but_python(tmp_path: Path) -> None:
    (tmp_path / "agent_helper.py").write_text(agent_module("http://localhost:1", EVERYTHING))
    program = (
        "import agent_helper, sys\n"
        "assert not any(it.startswith(('kvestigate', 'httpx')) for it in sys.modules)\n"
        "job = agent_helper.new_job(prefix='job', shards=2)\n"
        "try:\n"
        "    agent_helper.report_run(name='nodes')\n"
        "except agent_helper.GatewayUnreachable as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.')\n{program}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("http://localhost:1 gave no answer"), done.stderr


@pytest.mark.parametrize(
    "hostile",
    [
        {"summary": '"""\nimport os; os.system("touch pwned")\n"""'},
        {"summary": "\\"},
        {"parameters": {"properties": {"x=__import__('os')": {}, "class": {}, "a b": {}}}},
        {"parameters": {"properties": {"ok": {"type": "__import__('os')"}}, "required": ["ok"]}},
    ],
)
def test_what_a_server_says_does_not_become_code(hostile: dict[str, Any]) -> None:
    operation = {"name": "report.run", "summary": "s", "parameters": {}, **hostile}
    source = agent_module('http://x/"\nimport evil\n', {"name": '"""x', "operations": [operation]})
    tree = ast.parse(source)
    names = {it.id for it in ast.walk(tree) if isinstance(it, ast.Name)}
    modules = {
        alias.name for it in ast.walk(tree) if isinstance(it, ast.Import) for alias in it.names
    }
    assert "__import__" not in names
    assert "evil" not in modules
    assert not any(isinstance(it, ast.Attribute) and it.attr == "system" for it in ast.walk(tree))


@pytest.mark.parametrize("name", ["x(", "a b", "import os", "", 5, None, "a\n"])
def test_an_operation_with_an_impossible_name_is_refused(name: Any) -> None:
    with pytest.raises(InputError):
        agent_module("http://x", {"name": "x", "operations": [{"name": name}]})
