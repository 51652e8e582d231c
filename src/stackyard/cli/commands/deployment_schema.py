"""`stackyard deployment schema`."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result

__all__ = ["schema"]


@click.command("schema", cls=Command)
def schema() -> Result:
    """Print the JSON Schema of the object, for editors and other programs.

    A deployment.schema.json of your own beside deployment.yaml may ask for more than this; both have to be
    met, so that it cannot ask for less.
    """
    from stackyard.deployment.schema import read_schema, shipped_schema  # lazy: only when this verb runs

    return Result(document=shipped_schema(), show=lambda paper: paper.text(read_schema().decode()))
