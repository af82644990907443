"""Write the command reference, from what `--help` says, and the table of the audit's rules.

python tools/docs.py          write the pages, remove those of commands that are gone
python tools/docs.py --check  only say which pages are stale; exit 1 if any is
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import click
import yaml

from kvestigate.cli.main import K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM, KVESTIGATE_PROGRAM
from kvestigate.cli.tree import walk
from kvestigate.health.registry import RULES
from kvestigate.render.severity import Severity

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "commands"
RULES_PAGE = ROOT / "docs" / "rules.md"
EXAMPLES = ROOT / "tests" / "health" / "examples"
WIDTH = 96
PROGRAMS = (KVESTIGATE_PROGRAM, K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM)


def pages() -> dict[str, str]:
    """File name -> content, for every program and each of its top-level commands."""
    made: dict[str, str] = {}
    for program in PROGRAMS:
        root = click.Context(
            program, info_name=program.name, **program.context_settings, terminal_width=WIDTH
        )
        made[f"{program.name}.md"] = _page([root])
        for name, contexts in groupby(walk(program, width=WIDTH), key=_top):
            prefix = "" if program is KVESTIGATE_PROGRAM else f"{program.name}-"
            made[f"{prefix}{name}.md"] = _page(list(contexts))
    return made


def _top(context: click.Context) -> str:
    """The name of the top-level command that `context` is or belongs to."""
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    return context.info_name or ""


def _page(contexts: list[click.Context]) -> str:
    return "\n".join(
        _section(context, level=1 if index == 0 else 2) for index, context in enumerate(contexts)
    )


def _section(context: click.Context, *, level: int) -> str:
    return f"{'#' * level} {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def rules_page() -> str:
    """A line for each rule; the severities and what is left alone are those of its examples."""
    lines = [
        "# Rules of the audit",
        "",
        "`kvestigate audit` checks these rules. Those marked *advice* are only checked when their",
        "profile is asked for: `kvestigate audit --profile security`. The examples that every rule",
        "is tested with are in `tests/health/examples`.",
        "",
        "| rule | severity | profile | reported when | for example |",
        "|---|---|---|---|---|",
    ]
    for rule in sorted(RULES, key=lambda rule: (rule.profile.value, rule.strict, rule.name)):
        path = EXAMPLES / f"{rule.name}.yaml"
        fires = yaml.safe_load(path.read_text(encoding="utf-8"))["fires"] if path.exists() else []
        severities = {case["severity"] for case in fires if "severity" in case}
        worst = [one.value for one in Severity if one.value in severities]
        profile = f"{rule.profile.value}, *advice*" if rule.strict else rule.profile.value
        examples = "; ".join(case["what"] for case in fires[:3])
        cells = (f"`{rule.name}`", " or ".join(worst), profile, rule.summary, examples)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    made = pages()
    there = {path.name: path for path in PAGES.glob("*.md")}
    gone = sorted(there.keys() - made.keys())
    stale = sorted(
        name
        for name, content in made.items()
        if name not in there or there[name].read_text(encoding="utf-8") != content
    )
    rules = rules_page()
    outdated = not RULES_PAGE.exists() or RULES_PAGE.read_text(encoding="utf-8") != rules
    pages_written = [f"commands/{name}" for name in (*gone, *stale)]
    for name in [*pages_written, *([RULES_PAGE.name] if outdated else ())]:
        print(f"{'stale' if check else 'updated'}: docs/{name}")
    if check:
        return 1 if gone or stale or outdated else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in gone:
        there[name].unlink()
    for name in stale:
        (PAGES / name).write_text(made[name], encoding="utf-8")
    RULES_PAGE.write_text(rules, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
