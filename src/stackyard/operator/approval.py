"""What a user permits of the plans of a manifest, and who is asked before they are applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.path.plan_request import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.path.plan import Plan
    from stackyard.path.run import Run

__all__ = ["Approval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """How plans get permission.

    Attributes:
        plan_request: What may happen, by name, and what becomes part of a plan on request.
        confirm: Asks for each plan before anything is changed, and raises where the answer is no; nobody is
            asked when absent.
    """

    plan_request: PlanRequest = field(default_factory=PlanRequest)
    confirm: Callable[[Run, Plan], Awaitable[None]] | None = None
