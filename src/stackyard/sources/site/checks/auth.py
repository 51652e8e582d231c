"""Postures that ask for a token: the token is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.sources.site.entities.postures import AuthMethod
from stackyard.sources.site.postures import posture_of

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["check_auth"]

NO_TOKEN = Kind(
    code="E-SITE-TOKEN",
    summary="A token is missing",
    remedy="Add it to `auth` in secrets.yaml, or choose a posture with another `auth.method`.",
)
NO_METHOD = Kind(
    code="W-SITE-POSTURE-AUTH",
    summary="A posture does not say how guests prove themselves",
    remedy="Add `auth: {method: network}` if the network may be trusted, or `site_token`, or `node_token`.",
    severity=Severity.WARNING,
)
DISAGREE = Kind(
    code="W-SITE-POSTURE-TWICE",
    summary="The two forms of a posture disagree",
    remedy="Make them the same, or remove the flat one.",
    severity=Severity.WARNING,
)


def check_auth(site: Site, found: Diagnostics) -> None:
    """Check that each env has the tokens that its posture asks for, and that postures say what that is."""
    for name in sorted({*site.postures, *site.flat_postures}):
        posture = posture_of(site, name)
        if posture.auth_method is None:
            detail = (
                f"The posture '{name}' has no `auth.method`, so that every address on the network is trusted."
            )
            found.add(NO_METHOD, detail, posture.place())
        for key, flat, nested in posture.disagreements():
            detail = f"`{key}` of the posture '{name}' is {flat!r} here and {nested!r} in the nested form."
            found.add(DISAGREE, detail, posture.place(key))
    if site.secrets.is_known:
        for name in site.envs:
            _check_env(site, name, found)
            _check_pulls(site, name, found)


def _check_pulls(site: Site, name: str, found: Diagnostics) -> None:
    """Check that each guest that fetches its spec has the token that the posture of the spec asks for."""
    defaults, auth = site.settings.defaults, site.secret_values.auth
    if defaults.spec_server is None and defaults.server_url is None:
        return
    for guest in site.guests(name):
        spec = site.specs.get(guest.values.get("spec") or guest.name)
        if spec is None or _is_given(site, guest) or guest.values.get("imported"):
            continue
        posture = spec.model.access.posture
        method = posture_of(site, posture).auth_method
        is_missing = {
            AuthMethod.SITE_TOKEN: auth.site_token is None,
            AuthMethod.NODE_TOKEN: guest.name not in auth.node_tokens,
        }
        if method is not None and is_missing.get(method, False):
            token = "site_token" if method is AuthMethod.SITE_TOKEN else f"node_tokens.{guest.name}"
            detail = f"The posture '{posture}' of the spec '{spec.name}' asks for `auth.{token}`."
            found.add(NO_TOKEN, f"{detail} secrets.yaml has none.", guest.place(("name",)))


def _is_given(site: Site, guest: GuestEntry) -> bool:
    """Return whether a guest is given what it proves itself with, or fetches nothing."""
    own = site.own_boots.get(guest.name)
    return own is not None and own.pull is not None


def _check_env(site: Site, name: str, found: Diagnostics) -> None:
    env = site.envs[name]
    if env.model.posture not in site.postures:
        return
    method = posture_of(site, env.model.posture).auth_method
    auth = site.secret_values.auth
    if method is AuthMethod.SITE_TOKEN and auth.site_token is None:
        detail = f"The posture '{env.model.posture}' asks for `auth.site_token`, and secrets.yaml has none."
        found.add(NO_TOKEN, detail, env.places.place(("posture",)))
    if method is AuthMethod.NODE_TOKEN:
        for guest in site.guests(name):
            if guest.name not in auth.node_tokens and not _is_given(site, guest):
                detail = f"The posture '{env.model.posture}' asks for `auth.node_tokens.{guest.name}`."
                found.add(NO_TOKEN, f"{detail} secrets.yaml has none.", guest.place(("name",)))
