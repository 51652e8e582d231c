"""Blocks that virtual machines and containers spell alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.render.terms import Json, blocks, template

if TYPE_CHECKING:
    from stackyard.desired import Secret, Startup

__all__ = ["lifecycle", "password_of", "startup_blocks"]


def startup_blocks(startup: Startup | None) -> list[dict[str, Json]]:
    """Return when a guest starts and stops in relation to others."""
    if startup is None:
        return []
    return blocks(
        {"order": startup.order, "up_delay": startup.up_delay_s, "down_delay": startup.down_delay_s}
    )


def password_of(secret: Secret | None) -> Json:
    """Return a password as the variable that brings it."""
    return None if secret is None else template((secret,))


def lifecycle(*left_alone: str) -> dict[str, Json]:
    """Return the block that keeps the engine from changing these attributes; nothing where there is none."""
    return {"lifecycle": {"ignore_changes": list(left_alone)}} if left_alone else {}
