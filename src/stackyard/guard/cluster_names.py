"""Names of other things that a target uses: each is in the cluster, or the target makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.guard.findings import UNKNOWN, Finding
from stackyard.guard.names_used.things import THINGS, ask_names, is_seen, list_made, list_there, same_name
from stackyard.guard.names_used.users import ACL, list_users

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls
    from stackyard.guard.names_used.users import User
    from stackyard.guard.names_used.uses import Use

__all__ = ["NO_OBJECT", "ask_cluster_names", "find_cluster_names", "say_known"]

NO_OBJECT = Kind(
    code="E-GUARD-NO-SUCH-OBJECT",
    summary="A cluster does not have what is used by name",
    remedy="Correct the name, or declare the object in the file of the cluster or node.",
)
_MOST_NAMED = 10


def say_known(names: Collection[str]) -> str:
    """Return names as part of a sentence; of many, only some."""
    more = " and others" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(sorted(names)[:_MOST_NAMED])}{more}" or "none"


def _list_foreign(implied: ImpliedCalls) -> Iterator[tuple[User, Use]]:
    """Return what is used that the target does not make itself."""
    made = list_made(implied.desired)
    for user in list_users(implied.desired):
        if user.address in implied.unchanged:
            continue
        for use in user.list_uses():
            is_made = (use.kind, same_name(use.kind, use.name)) in made
            # What another target makes later is no mistake where Proxmox takes the name before.
            if not is_made and not (use.may_follow and implied.declared.has(use.kind, use.name)):
                yield user, use


def ask_cluster_names(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for what the cluster has of the kinds that are used."""
    del cluster
    for user, use in _list_foreign(implied):
        yield from ask_names(use.kind, use.name)
        if not user.address:
            yield ACL


def find_cluster_names(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report names that the cluster does not have; of those that the token may not see, it is not known."""
    for user, use in _list_foreign(implied):
        names = list_there(use.kind, facts)
        if names is None or _has_entry(user, facts):
            continue
        wanted, word = same_name(use.kind, use.name), THINGS[use.kind].word
        if wanted in {same_name(use.kind, name) for name in names}:
            continue
        kind = NO_OBJECT if is_seen(use.kind, use.name, facts) else UNKNOWN
        detail = f"{user.who} uses the {word} {use.name}; "
        if kind is UNKNOWN:
            detail += "whether it exists is not known: the token may not see it."
        else:
            why = implied.declared.explain(use.kind, use.name, user.node, names)
            detail += f"the cluster has {say_known(names)}.{why}"
        yield Finding(kind=kind, detail=detail, label=user.label, field=user.field_of(use))


def _has_entry(user: User, facts: Facts) -> bool:
    """Return whether a role of a token is given already: that changes nothing."""
    if user.address:
        return False
    wanted = tuple(user.values[key] for key in ("path", "role_id", "token_id"))
    return any((row.get("path"), row.get("roleid"), row.get("ugid")) == wanted for row in facts.rows(ACL))
