"""The rows of a plan that are not the engine's: tokens, their roles, and passwords."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stackyard.engine.changes import Action, Change, Changes
from stackyard.provider.resources.access.moments import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.clients.proxmox.access_calls import AccessEntry, TokenSettings
    from stackyard.desired import UserPassword
    from stackyard.guard import Finding

__all__ = [
    "CredentialKind",
    "CredentialPlan",
    "CredentialStep",
    "KeptAccess",
    "address_of_credential",
    "describe_token",
    "make_row",
    "name_grant",
]


class CredentialKind(enum.StrEnum):
    """What is set beside the engine; the type of its rows in a plan."""

    TOKEN = "proxmox_token"  # noqa: S105 -- a type
    GRANT = "proxmox_token_role"
    PASSWORD = "proxmox_password"  # noqa: S105 -- as above


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialStep:
    """One thing to do.

    Attributes:
        kind: What it is about.
        change: What a reader of the plan sees of it.
        token: The token as it should be; None if it goes.
        store: What the secrets keep the token as.
        entry: The role of a token.
        password: The password of a user.
        is_last: Whether it comes after everything else, because the run itself uses what goes.
    """

    kind: CredentialKind
    change: Change
    token: TokenSettings | None = None
    store: str = ""
    entry: AccessEntry | None = None
    password: UserPassword | None = None
    is_last: bool = False

    @property
    def name(self) -> str:
        """The token, or the user of a password."""
        return self.change.name

    @property
    def removes(self) -> bool:
        """Whether it comes before the engine: what goes is used no longer when its user goes."""
        return self.change.action is Action.DELETE and not self.is_last


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAccess:
    """What a destroy leaves, because the site uses it.

    Attributes:
        tokens: The tokens that are used.
        addresses: What they need of the state, which forgets it.
        objects: The kind and the id of each object that they need, also of those that left the state before.
    """

    tokens: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    objects: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialPlan:
    """What is done beside the engine.

    Attributes:
        steps: What to do, in this order.
        findings: What is in the way, or worth knowing.
        forgotten: Tokens, users and roles of the record that neither the file nor the cluster has.
        kept: What stays although all is to go, because the site uses it.
        used: The tokens of the file that nodes of the site use, each with these nodes.
    """

    steps: tuple[CredentialStep, ...] = ()
    findings: tuple[Finding, ...] = ()
    forgotten: frozenset[str | AccessEntry] = frozenset()
    kept: KeptAccess = field(default_factory=KeptAccess)
    used: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to do."""
        return not self.steps and not self.forgotten

    @property
    def changes(self) -> tuple[Change, ...]:
        """What a reader of the plan sees of it."""
        return tuple(step.change for step in self.steps)

    @property
    def access(self) -> Changes:
        """What it does with tokens and their roles, as resources of the provider would do it."""
        done = (step for step in self.steps if step.change.action is not Action.NOTHING)
        return Changes(planned=tuple(_list_access(done)))

    @property
    def makes_tokens(self) -> bool:
        """Whether a new secret has to be kept."""
        made = (Action.CREATE, Action.REPLACE)
        return any(one.kind is CredentialKind.TOKEN and one.change.action in made for one in self.steps)

    @property
    def sets_passwords(self) -> bool:
        """Whether a password is set, which needs a login."""
        return any(step.kind is CredentialKind.PASSWORD for step in self.steps)

    def document(self) -> list[dict[str, Any]]:
        """Return what a saved plan keeps of it, to be compared: no secret."""
        return [
            {
                "address": one.address,
                "action": one.action.value,
                "differences": [[item.name, str(item.before), str(item.after)] for item in one.differences],
            }
            for one in self.changes
        ]


def address_of_credential(kind: CredentialKind, name: str) -> str:
    """Return what a row of the plan is known by."""
    word = {CredentialKind.TOKEN: "token", CredentialKind.GRANT: "token_role"}.get(kind, "password")
    return f'{word}["{name}"]'


def name_grant(entry: AccessEntry) -> str:
    """Return what a role of a token is called."""
    return f"{entry.owner} ({entry.role} on {entry.path})"


def describe_token(token: TokenSettings, store: str = "") -> dict[str, Any]:
    """Return what a reader of a plan sees of a token."""
    return {
        "comment": token.comment,
        "expiration_date": read_moment(token.expires) if token.expires else None,
        "privileges_separation": token.separates,
        **({"store": f"api_tokens.{store}"} if store else {}),
    }


def make_row(kind: CredentialKind, name: str, action: Action, **values: Any) -> Change:
    """Return a row of a plan.

    Args:
        kind: What it is about.
        name: What that is called.
        action: What happens to it.
        values: What else a `Change` says.
    """
    return Change(
        address=address_of_credential(kind, name), kind=kind.value, name=name, action=action, **values
    )


def _list_access(steps: Iterable[CredentialStep]) -> Iterable[Change]:
    for step in steps:
        change, entry = step.change, step.entry
        if entry is not None:
            values = {"path": entry.path, "token_id": entry.owner, "role_id": entry.role}
            had = {**values, "propagate": not entry.propagate}
            yield replace(
                change,
                kind="proxmox_acl",
                before=None if change.action is Action.CREATE else had,
                after=None if change.action is Action.DELETE else {**values, "propagate": entry.propagate},
            )
        elif step.kind is CredentialKind.TOKEN:
            user, _, name = step.name.partition("!")
            values = {"user_id": user, "token_name": name}
            yield replace(
                change,
                kind="proxmox_user_token",
                # A token that gets a new secret keeps its roles.
                action=Action.UPDATE if change.action is Action.REPLACE else change.action,
                before=None if change.before is None else {**change.before, **values},
                after=None if change.after is None else {**change.after, **values},
            )
