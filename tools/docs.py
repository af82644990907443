"""Write the command reference: a page a command, from what `--help` says.

python tools/docs.py          write the pages, remove those of commands that are gone
python tools/docs.py --check  only say which pages are stale; exit 1 if any is
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import click

from kvestigate.cli.main import K8S_CLI_PROGRAM, K8S_COLLECT_PROGRAM, KVESTIGATE_PROGRAM
from kvestigate.cli.tree import walk

PAGES = Path(__file__).parents[1] / "docs" / "commands"
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


def main(check: bool) -> int:
    made = pages()
    there = {path.name: path for path in PAGES.glob("*.md")}
    gone = sorted(there.keys() - made.keys())
    stale = sorted(
        name
        for name, content in made.items()
        if name not in there or there[name].read_text(encoding="utf-8") != content
    )
    for name in [*gone, *stale]:
        print(f"{'stale' if check else 'updated'}: docs/commands/{name}")
    if check:
        return 1 if gone or stale else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in gone:
        there[name].unlink()
    for name in stale:
        (PAGES / name).write_text(made[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
