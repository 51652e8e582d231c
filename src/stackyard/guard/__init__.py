"""Checks between a plan and its apply: refuse to destroy, stop or collide with a guest until it is named.

Every check is a function of values: the plan, its model, and the objects on the cluster. All findings are
reported at once, each with the option that would permit it, if there is one.
"""

from __future__ import annotations

from stackyard.guard.cluster import Cluster, ClusterGuest, ClusterObject, Node, Storage
from stackyard.guard.findings import Allowances, Finding, GuardRefusedError, Permit
from stackyard.guard.inspection import Verdict, inspect, inspect_facts, inspect_placement
from stackyard.guard.ownership import Adoption, Owned, Owners
from stackyard.guard.renames import Rename

__all__ = [
    "Adoption",
    "Allowances",
    "Cluster",
    "ClusterGuest",
    "ClusterObject",
    "Finding",
    "GuardRefusedError",
    "Node",
    "Owned",
    "Owners",
    "Permit",
    "Rename",
    "Storage",
    "Verdict",
    "inspect",
    "inspect_facts",
    "inspect_placement",
]
