"""`stackyard deployment explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.deployment.explain import ExplainedField

__all__ = ["explain"]

_LONGEST_SHOWN = 60


@click.command("explain", cls=Command)
@click.argument("name")
@store_option
@pass_session
def explain(session: Session, /, name: str, store: str | None) -> Result:
    """Show every value of guest NAME, and where each comes from.

    A value in the object is shown with its line. Any other value is shown as a default, or with what it was
    derived from.
    """
    from stackyard.sources.deployment.explain import explain as explained  # lazy: only when this verb runs
    from stackyard.sources.deployment.fetch import fetch, rules_of  # lazy: as above
    from stackyard.sources.deployment.validate import check  # lazy: as above
    from stackyard.sources.deployment.words import find_near_word  # lazy: as above

    place = place_of(store)
    found = fetch(place, emit=session.emit)
    checked = check(found.document, rules_of(place))
    understood = checked.require()
    guest = understood.find(name)
    if guest is None:
        meant = find_near_word(name, [guest.key for guest in understood.guests])
        hint = f" Did you mean `{meant}`?" if meant else ""
        raise UsageError(f"There is no guest `{name}` in {found.label}.{hint}")
    values = explained(guest, found.document)
    kind = "container" if guest.is_container else "vm"
    return Result(
        document={
            "guest": name,
            "type": kind,
            "store": found.label,
            "values": [_document(value) for value in values],
        },
        show=lambda writer: _show(writer, values),
    )


def _document(value: ExplainedField) -> dict[str, Any]:
    where = value.where
    return {
        "key": value.key,
        "value": value.value,
        "line": None if where is None else where.line,
        "is_default": where is None,
        "why": value.why or None,
    }


def _show(writer: TextWriter, values: list[ExplainedField]) -> None:
    rows = []
    for value in values:
        where = "" if value.where is None else f"line {value.where.line}"
        rows.append((value.key, _format_value(value.value), ", ".join(filter(None, (where, value.why)))))
    writer.table(("key", "value", "from"), rows)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        text = ", ".join(value) or "-"
    else:
        text = "-" if value is None else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
