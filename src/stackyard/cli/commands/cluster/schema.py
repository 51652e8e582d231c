"""`stackyard cluster schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["FILES", "schema"]

# The names that `sources.cluster` has, which is not loaded to show a help.
FILES = ("cluster", "nodes", "cluster-secrets", "cluster-toml", "bootstrap")


@click.command("schema", cls=Command)
@click.argument("file", type=click.Choice(FILES))
def schema(file: str) -> Result:
    """Print the JSON Schema of a file of a cluster, for editors that check it while you type.

    \b
    stackyard cluster schema cluster > cluster.schema.json
    # yaml-language-server: $schema=cluster.schema.json
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.cluster.schema import cluster_schema  # lazy: pydantic, only when this verb runs

    document = cluster_schema(file)

    def show(writer: TextWriter) -> None:
        import orjson  # lazy: for this text alone

        for line in orjson.dumps(document, option=orjson.OPT_INDENT_2).decode().splitlines():
            writer.line(line)

    return Result(document=document, show=show)
