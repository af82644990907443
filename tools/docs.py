"""Write the command reference, from what `--help` says, the table of the audit's rules, and the
picture of the demo, from what the README says.

python -m tools.docs          write the pages, remove those of commands that are gone
python -m tools.docs --check  only say which pages are stale; exit 1 if any is
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
from tools.demo_picture import picture, transcript

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "commands"
RULES_PAGE = ROOT / "docs" / "rules.md"
DEMO_PICTURE = ROOT / "docs" / "images" / "demo.svg"
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


def demo_picture() -> str:
    return picture(transcript((ROOT / "README.md").read_text(encoding="utf-8")))


def main(check: bool) -> int:
    made = {PAGES / name: content for name, content in pages().items()}
    made |= {RULES_PAGE: rules_page(), DEMO_PICTURE: demo_picture()}
    gone = sorted(set(PAGES.glob("*.md")) - made.keys())
    stale = [
        path
        for path, content in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != content
    ]
    for path in (*gone, *stale):
        print(f"{'stale' if check else 'updated'}: {path.relative_to(ROOT)}")
    if check:
        return 1 if gone or stale else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for path in gone:
        path.unlink()
    for path in stale:
        path.write_text(made[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
