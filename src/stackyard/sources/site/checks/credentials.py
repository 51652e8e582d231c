"""Tokens and passwords in `hypervisors/`: each is kept under a name of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.sources.hypervisor.build import list_entries
from stackyard.sources.hypervisor.credentials import build_token, is_token_grant

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.base.errors import Location
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["check_credentials"]

SAME_STORE = Kind(
    code="E-SITE-TOKEN-STORE",
    summary="Two tokens would be kept under one name",
    remedy="Give one of them another `store`.",
)
OTHER_REALM = Kind(
    code="E-SITE-PASSWORD-REALM",
    summary="Proxmox does not keep the passwords of this realm",
    remedy="Remove the password: the server of the realm has it.",
)
NO_EFFECT = Kind(
    code="E-SITE-TOKEN-ROLE",
    summary="A role is given to a token that has the privileges of its user",
    remedy="Give the role to the user, with `user_id`; or set `privileges_separation: true` for the token.",
)


def check_credentials(site: Site, found: Diagnostics) -> None:
    """Check the tokens, the roles of tokens and the passwords of all clusters."""
    stores: dict[str, tuple[str, Location]] = {}
    for loaded in site.hypervisors.values():
        _check_stores(loaded, stores, found)
        _check_entries(loaded, found)


def _check_stores(
    loaded: LoadedFile[Any], stores: dict[str, tuple[str, Location]], found: Diagnostics
) -> None:
    for name, entry in (getattr(loaded.model, "tokens", None) or {}).items():
        store, where = build_token(name, entry).store, loaded.places.place(("tokens", name))
        other = stores.setdefault(store, (name, where))
        if other[1] != where:
            detail = f"{name} and {other[0]} ({other[1]}) would both be `api_tokens.{store}`."
            found.add(SAME_STORE, detail, where)


def _check_entries(loaded: LoadedFile[Any], found: Diagnostics) -> None:
    tokens = getattr(loaded.model, "tokens", None) or {}
    realms = getattr(loaded.model, "realms", None) or {}
    for one in list_entries(loaded.model):
        where = loaded.places.place(one.path)
        if is_token_grant(one.kind, one.values):
            token = tokens.get(one.values["token_id"])
            if token is not None and token.privileges_separation is False:
                detail = f"{one.values['token_id']} has the privileges of its user: the role has no effect."
                found.add(NO_EFFECT, detail, where)
        elif one.kind == "user" and one.values.get("password") and one.name.rpartition("@")[2] in realms:
            where = loaded.places.place((*one.path, "password"))
            found.add(OTHER_REALM, f"{one.name} is a user of a realm of this file.", where)
