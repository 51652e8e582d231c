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
    """Make what a manifest says, verify every node at every depth, and remove what was made.

    \b
    stackyard test -M n1-basic -H lab
    stackyard test -M n1-basic -H lab --json-output

    What was there before stays. What was made is removed however the test ends, unless the manifest says
    `cleanup_on_failure: false`.
    """  # noqa: D301 - click reads the control character
    return operate(session, "test", values)
