"""`stackyard test`: make what a manifest says, look whether it is so, and take it away again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.operator_options import operator_options
from stackyard.cli.operators import operate
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["test"]


@click.command("test", cls=Command)
@operator_options
@pass_session
def test(session: Session, /, **values: Any) -> Result:
    """Create the guests of a manifest, verify every node at every depth, and remove them again.

    \b
    stackyard test -M n1-basic -H lab
    stackyard test -M n1-basic -H lab --json-output

    Guests that existed before stay. The command removes everything that it created, whether the test passes
    or fails, unless the manifest sets `cleanup_on_failure: false`.
    """  # noqa: D301 - click reads the control character
    return operate(session, "test", values)
