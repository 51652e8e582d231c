"""`stackyard create`: make what a manifest says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.operator_options import operator_options
from stackyard.cli.operators import operate
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["create"]


@click.command("create", cls=Command)
@operator_options
@pass_session
def create(session: Session, /, **values: Any) -> Result:
    """Create and configure the guests of a manifest: the same as `stackyard apply manifest:NAME`.

    \b
    stackyard create -M n1-basic -H lab
    stackyard create -M n2-quick -H lab --dry-run

    You can repeat the command: it checks existing guests, configures them again if needed, and otherwise does
    not change them. After a failure, the same command continues from what already exists.
    """  # noqa: D301 - click reads the control character
    return operate(session, "create", values)
