"""Blocks that virtual machines and containers spell alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.fields.guest import STARTUP
from stackyard.render.terms import Json, blocks, template

if TYPE_CHECKING:
    from stackyard.desired import Guest, Secret, Startup

__all__ = ["lifecycle", "list_cluster_managed", "password_of", "startup_blocks"]


def startup_blocks(startup: Startup | None) -> list[dict[str, Json]]:
    """Return when a guest starts and stops in relation to others."""
    return blocks(None if startup is None else STARTUP.render(startup))


def password_of(secret: Secret | None) -> Json:
    """Return a password as the variable that brings it."""
    return None if secret is None else template((secret,))


def list_cluster_managed(guest: Guest) -> tuple[str, ...]:
    """Return what the cluster changes by itself: where a guest under high availability runs is its decision.

    Written down as wanted, a guest that was moved in need would be replaced on the node that failed.
    """
    return () if guest.ha is None else ("node_name",)


def lifecycle(*left_alone: str) -> dict[str, Json]:
    """Return the block that keeps the engine from changing these attributes; nothing where there is none."""
    return {"lifecycle": {"ignore_changes": list(left_alone)}} if left_alone else {}
