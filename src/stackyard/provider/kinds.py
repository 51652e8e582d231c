"""What a resource and a data source consist of: names, rules of its plan, and what it does on Proxmox.

Everything else (schema, wire, planning, diagnostics, states of half-done work) is done once, for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.provider.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from stackyard.clients import proxmox
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.schema import Rule
    from stackyard.provider.session import Session
    from stackyard.provider.values import Object

__all__ = ["DataSource", "Resource", "Work", "both_names"]


def both_names(name: str) -> tuple[str, str]:
    """Return the short and the long name of a resource or data source, where bpg has both."""
    return f"proxmox_{name}", f"proxmox_virtual_environment_{name}"


@dataclass(slots=True)
class Work:
    """One operation on one resource: what it may use, and what it reports on the way.

    Attributes:
        session: The configured provider.
        type_name: The name of the resource as the configuration spells it.
        config: What an apply finds in the configuration; write-only values are there and nowhere else.
        kept: What is there by now; it goes to the state even when the operation fails afterwards.
        private: What is remembered beside the state, from a read to the plan that follows.
        warnings: What the user should know.
    """

    session: Session
    type_name: str
    config: Object = field(default_factory=dict)
    kept: Object | None = None
    private: dict[str, Any] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def client(self) -> proxmox.Client:
        """The door to the API."""
        return self.session.client

    def keep(self, state: Object) -> None:
        """Note what is there now, so that a failure from here on does not lose it."""
        self.kept = dict(state)

    def warn(self, summary: str, detail: str) -> None:
        """Tell the user something that does not stop the work."""
        self.warnings.append(Problem(summary=summary, detail=detail, is_error=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of resource.

    Attributes:
        names: Its names, the first being the one of the facts; all share one schema.
        create: Makes it as planned and returns its state.
        read: Returns its state as it is, or None when it is gone.
        delete: Removes it; one that is gone already is no error.
        identify: Turns the id of an import into the attributes that `read` needs.
        update: Changes it in place and returns its state; None when every change replaces it.
        rules: What plans do, by attribute, where the facts do not say it.
        plan: Adjusts a plan where the rules are not enough.
        validate: Checks a configuration as a whole; unknown values are to be left alone.
    """

    names: tuple[str, ...]
    create: Callable[[Work, Object], Awaitable[Object]]
    read: Callable[[Work, Object], Awaitable[Object | None]]
    delete: Callable[[Work, Object], Awaitable[None]]
    identify: Callable[[str], Object]
    update: Callable[[Work, Object, Object], Awaitable[Object]] | None = None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    plan: Callable[[PlanDraft], None] | None = None
    validate: Callable[[Object], Iterable[Problem]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A kind of data source.

    Attributes:
        names: Its names; all share one schema.
        read: Returns its values for a configuration.
        rules: Checks of single attributes.
    """

    names: tuple[str, ...]
    read: Callable[[Work, Object], Awaitable[Object]]
    rules: Mapping[str, Rule] = field(default_factory=dict)
