"""`stackyard completion`: the script that makes a shell complete stackyard's verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, get_completion_class

from stackyard.base.errors import InternalError
from stackyard.cli.command import Command
from stackyard.cli.result import Result

__all__ = ["completion"]


# Bash splits words at colons: `env:dev` would be three. The line itself is read instead, and an answer leaves
# out what bash takes for other words.
_BASH = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" words last kept="" type value
    read -ra words <<< "$line"
    last="${words[-1]}"
    if [[ "$line" == *[[:space:]] ]]; then
        words+=("")
        last=""
    fi
    if [[ "$COMP_WORDBREAKS" == *:* && "$last" == *:* ]]; then
        kept="${last%%:*}:"
    fi
    while IFS=, read -r type value; do
        if [[ "$type" == dir ]]; then
            compopt -o dirnames
        elif [[ "$type" == file ]]; then
            compopt -o default
        elif [[ "$type" == plain ]]; then
            COMPREPLY+=("${value#"$kept"}")
        fi
    done < <(env COMP_WORDS="$line" COMP_CWORD=$(( ${#words[@]} - 1 )) %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """Bash, with colons as a part of words."""

    source_template = _BASH

    @staticmethod
    def _check_version() -> None:
        """Do nothing: the script may be written for another machine."""


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> Result:
    """Print the completion script for a shell.

    It completes commands, options, targets, hosts, guests, manifests, states and labs.

    \b
    bash:  stackyard completion bash > ~/.local/share/bash-completion/completions/stackyard
    zsh:   stackyard completion zsh > ~/.zfunc/_stackyard   (with ~/.zfunc in fpath)
    fish:  stackyard completion fish > ~/.config/fish/completions/stackyard.fish
    """  # noqa: D301 - click reads the control character
    complete = _Bash if shell == "bash" else get_completion_class(shell)
    if complete is None:
        raise InternalError(f"There is no completion for {shell}.")
    root = ctx.find_root()
    script = complete(root.command, {}, "stackyard", "_STACKYARD_COMPLETE").source()
    return Result(document={"shell": shell, "script": script}, show=lambda writer: writer.lines(script))
