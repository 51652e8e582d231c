"""What a plan takes over from other states, for humans and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.handover import Handover

__all__ = ["handover_documents", "show_handovers"]


def handover_documents(handovers: Sequence[Handover]) -> list[dict[str, Any]]:
    """Return the JSON view."""
    return [
        {"object": name, "from": str(one.owner.owner), "state": one.state}
        for one in handovers
        for name in one.objects
    ]


def show_handovers(writer: TextWriter, handovers: Sequence[Handover]) -> None:
    """Show each object that leaves another state; on the cluster nothing happens to it."""
    for row in handover_documents(handovers):
        writer.line(f"  < take over {row['object']} from {row['from']} (state {row['state']})", style="green")
