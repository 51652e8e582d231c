"""What a plan is asked for, for targets of every kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from stackyard.engine.tofu import PlanMode
from stackyard.guard import Allowances

__all__ = ["PlanRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the user asks for besides the plan itself.

    Attributes:
        mode: What the plan is for.
        allowances: What may happen, by name.
        accept_renames: Whether guests under a new key are moved in the state.
        adopt: Whether guests and other objects that nothing manages are taken over.
        unchanged: Whether resources to which nothing happens are wanted too, which costs a start of the
            engine where there are no others.
        targets: Addresses to plan for, with what they need; everything when empty.
        recreate: Names of guests to destroy and create again.
        has_login: Whether somebody logged in, who sets passwords.
        takes_more: Whether objects of other states are taken over that the target does not have yet.
        are_names_first: Whether there is no plan where guests use something that the cluster does not have.
    """

    mode: PlanMode = PlanMode.NORMAL
    allowances: Allowances = field(default_factory=Allowances)
    accept_renames: bool = False
    adopt: bool = False
    unchanged: bool = False
    targets: tuple[str, ...] = ()
    recreate: frozenset[str] = frozenset()
    has_login: bool = False
    takes_more: bool = True
    are_names_first: bool = False
