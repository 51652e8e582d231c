"""What a guest should be, as one document: its spec, or what the site says of every guest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.sources.site.postures import posture_of
from stackyard.sources.site.specs import DEFAULT_TIMEZONE, DEFAULT_USER, join_lists, resolve_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.site.load import Site

__all__ = ["posture_port", "push_document"]


def push_document(
    site: Site, guest: str, *, spec: str | None, posture: str, packages: tuple[str, ...], is_container: bool
) -> dict[str, Any]:
    """Return what the operator makes of a guest, resolved as a spec is.

    Args:
        site: The site.
        guest: The name of the guest.
        spec: Its spec; without one it is what the site and the posture say of every guest.
        posture: The posture that counts without a spec.
        packages: The packages that are said of this guest alone.
        is_container: Whether it is a container, for whom no cloud-init has made the user that we log in as.
    """
    document = (
        _plain_document(site, guest, posture) if spec is None else resolve_spec(site, spec, guest=guest)
    )
    platform = document["platform"]
    users: list[dict[str, Any]] = document["access"]["users"]
    own = _automation(site)
    for user in users:
        if user["name"] == own["name"]:
            user["automation"] = True
            user["sudo"] = True
    if is_container:
        if all(user["name"] != own["name"] for user in users):
            users.append(own)
        # The templates of containers come without it.
        packages = (*packages, "sudo")
    platform["packages"] = join_lists(platform["packages"], packages)
    return document


def _automation(site: Site) -> dict[str, Any]:
    defaults = site.settings.defaults
    return {
        "name": defaults.automation_user or defaults.vm_user or DEFAULT_USER,
        "sudo": True,
        "automation": True,
        "ssh_keys": list(site.secret_values.ssh_keys.values()),
    }


def _plain_document(site: Site, guest: str, posture: str) -> dict[str, Any]:
    defaults, known = site.settings.defaults, posture_of(site, posture)
    return {
        "schema_version": 1,
        "identity": {"hostname": guest, "domain": defaults.domain},
        "network": {"ip": None, "gateway": None, "dns": list(defaults.dns_servers)},
        "access": {"posture": posture, "users": [], "_posture": known.document()},
        "platform": {
            "packages": join_lists(defaults.packages, known.packages(prefer_nested=True)),
            "services": {"enable": [], "disable": []},
        },
        "config": {"timezone": defaults.timezone or DEFAULT_TIMEZONE},
    }


def posture_port(document: Mapping[str, Any] | None) -> int | None:
    """Return the port of SSH that a document asks for."""
    return None if document is None else int(document["access"]["_posture"]["ssh"]["port"])
