"""The fault of the image factory's double."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.faults.faults import FaultRule, Point, Strike

if TYPE_CHECKING:
    from pvelab.world.store import Document

__all__ = ["WAYS", "factory_rule"]

WAYS = ("down", "slow", "wrong-bytes", "redirect-loop", "half-download")


def factory_rule(document: Document) -> FaultRule:
    """Return the rule of a fault of the factory."""
    slow = float(document.get("seconds", 30.0)) if document["how"] == "slow" else 0.0
    return FaultRule(
        point=Point.FACTORY,
        strike=Strike(reason=str(document["how"]), delay_s=slow),
        method=str(document.get("method", "*")).upper(),
        path=str(document.get("path", "*")),
        nth=int(document.get("nth", 0)),
        probability=float(document.get("probability", 1.0)),
        times=int(document.get("times", 0)),
    )
