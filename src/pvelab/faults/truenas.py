"""The fault of TrueNAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.faults.faults import FaultRule, Point, Strike

if TYPE_CHECKING:
    from pvelab.world.store import Document

__all__ = ["TRUENAS_WAYS", "truenas_rule"]

TRUENAS_WAYS = ("down", "lost-answer")


def truenas_rule(document: Document) -> FaultRule:
    """Return the rule of a fault of TrueNAS; the way stands where a rule of calls has the node."""
    return FaultRule(
        point=Point.TRUENAS,
        strike=Strike(reason=str(document["how"]), drop=True),
        node=str(document["how"]),
        path=str(document.get("path", "*")),
        nth=int(document.get("nth", 0)),
        times=int(document.get("times", 0)),
    )
