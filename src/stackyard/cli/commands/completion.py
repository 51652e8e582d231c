"""`stackyard completion`: the script that makes a shell complete stackyard's verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from stackyard.base.errors import InternalError
from stackyard.cli.command import Command
from stackyard.cli.result import Result

__all__ = ["completion"]


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> Result:
    """Print the completion script for a shell.

    \b
    bash:  stackyard completion bash > ~/.local/share/bash-completion/completions/stackyard
    zsh:   stackyard completion zsh > ~/.zfunc/_stackyard   (with ~/.zfunc in fpath)
    fish:  stackyard completion fish > ~/.config/fish/completions/stackyard.fish
    """  # noqa: D301 - click reads the control character
    complete = get_completion_class(shell)
    if complete is None:
        raise InternalError(f"There is no completion for {shell}.")
    root = ctx.find_root()
    script = complete(root.command, {}, "stackyard", "_STACKYARD_COMPLETE").source()
    return Result(document={"shell": shell, "script": script}, show=lambda writer: writer.lines(script))
