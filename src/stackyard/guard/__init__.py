"""Checks between a plan and its apply: what would destroy, stop or collide is refused until it is named.

Everything here is a function of values: the plan, the model that it came from, and what the cluster has. All
findings are reported at once, each with the option that would permit it, where one may.
"""

from __future__ import annotations

from stackyard.guard.cluster import Cluster, ClusterGuest, Node, Storage
from stackyard.guard.findings import Allowances, Finding, GuardRefusedError, Permit
from stackyard.guard.inspection import Verdict, inspect, inspect_facts, inspect_placement
from stackyard.guard.ownership import Adoption, Owners
from stackyard.guard.renames import Rename

__all__ = [
    "Adoption",
    "Allowances",
    "Cluster",
    "ClusterGuest",
    "Finding",
    "GuardRefusedError",
    "Node",
    "Owners",
    "Permit",
    "Rename",
    "Storage",
    "Verdict",
    "inspect",
    "inspect_facts",
    "inspect_placement",
]
