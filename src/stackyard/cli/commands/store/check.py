"""`stackyard store check`: whether the store can be relied on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.store.open_site import open_named, site_option, store_here
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["check"]

# A clock that is off by more makes times in records hard to compare; nothing else depends on it.
_LARGEST_SKEW_S = 30.0


@click.command("check", cls=Command)
@click.argument("store", required=False)
@site_option
def check(store: str | None, site: str | None) -> Result:
    """Check that a store can be read and written, and supports conditional writes.

    STORE is an address or a folder (default: the store of the site). The command writes one object below
    system/checks/ and deletes it.

    \b
    stackyard store check
    stackyard store check s3://bucket/prefix?endpoint=https://host:port
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.store.check import check_store  # lazy: only when this verb runs

    named = store or store_here(site).label
    with contextlib.closing(open_named(named, create=True)) as objects:
        found = check_store(objects)
    skew = found.clock_ahead_s
    document: dict[str, Any] = {
        "store": named,
        "write_ms": round(found.write_s * 1000, 2),
        "read_ms": round(found.read_s * 1000, 2),
        "clock_ahead_s": None if skew is None else round(skew, 1),
        "is_clock_off": skew is not None and abs(skew) > _LARGEST_SKEW_S,
    }
    return Result(document=document, show=lambda writer: _show(writer, document))


def _show(writer: TextWriter, document: Mapping[str, Any]) -> None:
    writer.line(
        f"{document['store']} can be read and written, and supports conditional writes.", style="green"
    )
    writer.line(f"  a write takes {document['write_ms']} ms, a read {document['read_ms']} ms")
    if document["is_clock_off"]:
        ahead = document["clock_ahead_s"]
        text = f"{ahead:g} s ahead of" if ahead > 0 else f"{-ahead:g} s behind"
        writer.line(f"  its clock is {text} the clock of this machine; correct one of them", style="yellow")
