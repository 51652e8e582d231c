"""`stackyard deployment schema`."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result

__all__ = ["schema"]


@click.command("schema", cls=Command)
def schema() -> Result:
    """Print the JSON Schema of the object, for editors and other programs.

    A deployment.schema.json of your own beside deployment.yaml can add requirements. The object must match
    both schemas: your own cannot relax this one.
    """
    from stackyard.sources.deployment.schema import (  # lazy: only when this verb runs
        load_shipped_schema,
        read_schema,
    )

    return Result(document=load_shipped_schema(), show=lambda writer: writer.text(read_schema().decode()))
