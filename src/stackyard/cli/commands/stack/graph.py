"""`stackyard stack graph`: the order of the stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["graph"]

_FORMS = ("tree", "mermaid", "dot")


@click.command("graph", cls=Command)
@click.option("--format", "form", type=click.Choice(_FORMS), default=_FORMS[0], help="The output format.")
def graph(form: str) -> Result:
    """Draw the order of the stacks: what is applied before what.

    The order comes from `after` and `before` in the files stack.yaml, and from the layers: a stack of a later
    layer comes after all stacks of the layers before it. In the tree, what is further right comes later; a
    stack that comes after several others is drawn below each of them.

    \b
    stackyard stack graph
    stackyard stack graph --format mermaid
    stackyard stack graph --format dot | dot -Tsvg > stacks.svg
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.stacks import diagram  # lazy: only when this verb runs
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    repository = find_stacks()
    order = repository.graph()
    draw = {"tree": diagram.draw_tree, "mermaid": diagram.draw_mermaid, "dot": diagram.draw_dot}[form]
    lines = draw(order)

    def show(writer: TextWriter) -> None:
        from stackyard.cli.commands.stack.words import show_broken  # lazy: only when shown

        for line in lines:
            writer.line(line)
        show_broken(writer, repository)

    return Result(
        document={
            "stacks": [
                {
                    "name": name,
                    "after": list(order.predecessors(name)),
                    "layer": repository.stacks[name].layer,
                }
                for name in order.nodes
            ],
            "levels": [list(level) for level in order.levels],
            "broken": sorted(repository.broken),
            "drawing": "\n".join(lines),
        },
        show=show,
    )
