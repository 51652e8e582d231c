"""What realms of every type have in common: `/access/domains`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches
from stackyard.provider.crud import Collection
from stackyard.provider.kinds import both_names
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stackyard.provider.fields import Field
    from stackyard.provider.kinds import Resource
    from stackyard.provider.problems import Problem
    from stackyard.provider.values import Object

__all__ = ["make_realm"]

_REALM = matches(
    r"[A-Za-z][A-Za-z0-9.\-_]{1,31}", "be 2 to 32 letters, digits and .-_, and begin with a letter"
)


def make_realm(
    kind: str,
    fields: Sequence[Field],
    *,
    rules: Mapping[str, Rule],
    validate: Callable[[Object], Iterable[Problem]],
    own_state: Callable[[Object, Mapping[str, Any]], Object] = lambda known, found: {},
) -> Resource:
    """Return the resource of realms of a type."""
    return Collection(
        path="/access/domains",
        key="realm",
        attribute="realm",
        made_with={"type": kind},
        fields=fields,
        own_state=own_state,
        each=True,
    ).resource(
        both_names(f"realm_{kind}"),
        rules={"id": Rule(keep=True), "realm": Rule(replace=True, check=_REALM), **rules},
        validate=validate,
    )
