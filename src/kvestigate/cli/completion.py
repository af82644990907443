"""`kvestigate completion`: the script that teaches a shell our commands and options."""

from __future__ import annotations

import click

from kvestigate.cli.command import command
from kvestigate.cli.options import GlobalOptions

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    examples=(
        "source <(kvestigate completion bash)",
        "kvestigate completion zsh > ~/.zfunc/_kvestigate",
        "kvestigate completion fish > ~/.config/fish/completions/kvestigate.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def completion(options: GlobalOptions, shell: str) -> None:
    """Print the completion script for your shell.

    SHELL is bash, zsh or fish.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    root = click.get_current_context().find_root()
    program = root.info_name or "kvestigate"
    variable = f"_{program.upper().replace('-', '_')}_COMPLETE"
    kind = get_completion_class(shell)
    assert kind is not None  # click knows each of SHELLS
    # Asking the base class: bash's own `source` runs bash to learn its version.
    click.echo(ShellComplete.source(kind(root.command, {}, program, variable)))
