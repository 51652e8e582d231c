"""The kind of target that a cluster is."""

from __future__ import annotations

__all__ = ["CLUSTER"]

# The word before the colon of a target.
CLUSTER = "cluster"
