"""`stackyard stack run`: a program in the folder of each stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import engine_arguments, select_options, selects_stacks

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["run"]


@click.command("run", cls=Command)
@select_options
@click.option("--reverse", is_flag=True, help="Begin with the stacks that others do not depend on.")
@engine_arguments
@pass_session
def run(session: Session, /, **values: Any) -> Result:
    """Run a program in the folder of each stack, in the order of their dependencies.

    \b
    stackyard stack run -- tofu fmt -check
    stackyard stack run --changed -- tflint
    stackyard stack run --layer 02-platforms --reverse -- sh -c 'echo $STACKYARD_STACK_NAME'

    Without an option that selects stacks, it runs in all of them. If the program fails in a stack, only the
    stacks that depend on it are skipped. The program must be on PATH; the OpenTofu that stackyard installed
    is not on PATH by itself. The program gets STACKYARD_STACK_NAME, STACKYARD_STACK_PATH,
    STACKYARD_STACK_LAYER and STACKYARD_STACK_TAGS. It runs without the lock and the guard of stackyard: to
    change a stack, use `stackyard apply`.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.stacks.command import run_in_stacks  # lazy: the help needs none of it

    if not selects_stacks(values):
        values["all_stacks"] = True
    return session.run(run_in_stacks(session, values))
