"""`stackyard cluster explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import open_named
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.cluster.explain import ExplainedValue
    from stackyard.sources.cluster.field_facts import FieldFacts
    from stackyard.sources.cluster.load import OpenedCluster

__all__ = ["explain"]

_LONGEST_SHOWN = 60


@click.command("explain", cls=Command)
@click.argument("what", metavar="[FIELD|NODE]", required=False)
@click.option("--cluster", "name", metavar="CLUSTER", help="The cluster, where the repository has several.")
def explain(what: str | None, name: str | None) -> Result:
    """Say what FIELD is for, or where each value of NODE comes from.

    For a node, every value is shown with its level (node, role, cluster, built-in, computed) and its file and
    line. Without an argument, the values of the cluster are shown the same way. Secrets are never shown. A
    field is explained also where there is no cluster.

    \b
    stackyard cluster explain k8s-1
    stackyard cluster explain proxmox_vm_defaults
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.cluster.field_facts import find_field, list_field_names  # lazy: pydantic

    field = None if what is None else find_field(what)
    if field is not None:
        return Result(document=field.document(), show=lambda writer: _show_field(writer, field))
    opened = open_named(name)
    values = _explain_values(opened, what)
    if values is None:
        nodes = [] if opened.read is None else [node.name or "" for node in opened.read.nodes]
        hint = did_you_mean(str(what), [*nodes, *list_field_names()])
        raise UsageError(f"`{what}` is neither a field nor a node of {opened.name}.{hint}")
    return Result(
        document={"cluster": opened.name, "values": [_document(value) for value in values]},
        show=lambda writer: _show_values(writer, values),
    )


def _explain_values(opened: OpenedCluster, what: str | None) -> list[ExplainedValue] | None:
    """Return the values of the cluster or of a node; None where there is no such node."""
    from stackyard.sources.cluster.explain import explain_cluster, explain_node  # lazy: pydantic

    read = opened.read
    if read is None:
        opened.require()
    elif what is None:
        return explain_cluster(read)
    else:
        found = next((index for index, node in enumerate(read.nodes) if node.name == what), None)
        return None if found is None else explain_node(read, found)
    return None


def _show_field(writer: TextWriter, field: FieldFacts) -> None:
    writer.line(f"{field.name}: {field.words}")
    facts = {
        "file": field.file,
        "cluster.toml": field.toml,
        "value": field.kind,
        "default": field.default,
        "required": "yes" if field.is_required else "no",
        "secret": "yes: in cluster.sops.yaml" if field.is_secret else "no",
    }
    for key, value in facts.items():
        if value:
            writer.line(f"  {key:<13} {value}")


def _document(value: ExplainedValue) -> dict[str, Any]:
    return {
        "field": value.field,
        "value": value.value,
        "level": value.level.value,
        "file": None if value.where is None else value.where.path,
        "line": None if value.where is None else value.where.line,
        "why": value.why or None,
    }


def _show_values(writer: TextWriter, values: Sequence[ExplainedValue]) -> None:
    rows = []
    for value in values:
        place = "" if value.where is None else f"{value.where.path}:{value.where.line}"
        rows.append(
            (
                value.field,
                _format(value.value),
                value.level.value,
                ", ".join(filter(None, (place, value.why))),
            )
        )
    writer.table(("field", "value", "level", "from"), rows)


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "-" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
