"""Each resolved value of an env, and the file and line that it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import Location
from stackyard.sources.site.entities.postures import AuthMethod
from stackyard.sources.site.own_code.find import EXTRA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.networks import NetworkCard
    from stackyard.sources.site.resolver import ConfigResolver

__all__ = ["ExplainedValue", "explain_env"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedValue:
    """One resolved value.

    Attributes:
        section: What it belongs to: `node`, a guest as `vm test`, `ansible`, or `own code`.
        key: What it is called there.
        value: What it is; it may be a secret.
        where: Where it was written; nowhere if it is what holds by default.
        why: How it came about, where that is more than "it is there".
    """

    section: str
    key: str
    value: Any
    where: Location | None
    why: str = ""


def explain_env(resolver: ConfigResolver, env: str, node: str | None = None) -> list[ExplainedValue]:
    """Return every value of an env on a node: of the node, the guests, for Ansible; then its own code.

    Raises:
        NotInSiteError: There is no such env or node.
        NodeNotChosenError: No node was given, and there is more than one.
    """
    resolved = resolver.resolve_env(env, node)
    chosen = resolver.node(env, node)
    result = list(_node(resolver, chosen, resolved))
    networks = resolver.site.networks(env)
    for guest, values in zip(resolver.site.guests(env), resolved["vms"], strict=True):
        section = f"{'ct' if guest.is_container else 'vm'} {guest.name}"
        card = next(iter(networks.cards(guest)), None)
        for key, value in values.items():
            where, why = _guest_origin(resolver, env, guest, card, key)
            result.append(ExplainedValue(section=section, key=key, value=value, where=where, why=why))
    return [*result, *_ansible(resolver, env), *_code(resolver, env)]


def _locate_first(places: LocatedValues | None, *paths: Sequence[Key]) -> Location | None:
    """Return where the first of these paths stands that a file has."""
    if places is None:
        return None
    for path in paths:
        value: Any = places.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return places.place(path)
    return None


def _node(resolver: ConfigResolver, name: str, resolved: dict[str, Any]) -> Iterator[ExplainedValue]:
    site = resolver.site
    node = site.nodes[name]
    site_places = None if site.file is None else site.file.places
    secrets = site.secrets.places
    token = node.model.api_token or name
    origins: dict[str, tuple[Location | None, str]] = {
        "node": (_locate_first(node.places, ("node",)) or node.places.place(), ""),
        "api_endpoint": (_locate_first(node.places, ("api_endpoint",)), ""),
        "api_token": (_locate_first(secrets, ("api_tokens", token)), f"`api_tokens.{token}`"),
        "ssh_user": (
            _locate_first(node.places, ("ssh_user",), ("host_user",))
            or _defaults(site_places, "ssh_user", "host_user"),
            "",
        ),
        "automation_user": (_defaults(site_places, "automation_user", "vm_user"), ""),
        "ssh_host": (_locate_first(node.places, ("ip",), ("api_endpoint",)), ""),
        "datastore": (_locate_first(node.places, ("datastore",)), ""),
        "root_password": (_locate_first(secrets, ("passwords", "vm_root")), "`passwords.vm_root`"),
        "ssh_keys": (_locate_first(secrets, ("ssh_keys",)), "all of `ssh_keys`"),
        "spec_server": (_defaults(site_places, "spec_server", "server_url"), ""),
        "dns_servers": (_defaults(site_places, "dns_servers"), ""),
    }
    for key, (where, why) in origins.items():
        if key in resolved:
            yield ExplainedValue(section="node", key=key, value=resolved[key], where=where, why=why)


def _defaults(places: LocatedValues | None, *keys: str) -> Location | None:
    return _locate_first(places, *(("defaults", key) for key in keys))


_PATHS: dict[str, tuple[tuple[Key, ...], ...]] = {
    "cores": (("cores",), ("cpu", "cores")),
    "memory": (("memory", "dedicated_mib"), ("memory",)),
    "memory_options": (("memory",),),
    "disk": (("disk",), ("disks", 0, "size_gib"), ("root_disk", "size_gib")),
    "ip": (("ip",), ("nics", 0, "ipv4"), ("nics", 0, "ipv6")),
    "packages": (("packages",), ("cloud_init", "packages")),
    "mac": (("mac",), ("nics", 0, "mac")),
}


def _guest_origin(
    resolver: ConfigResolver, env: str, guest: GuestEntry, card: NetworkCard | None, key: str
) -> tuple[Location | None, str]:
    loaded = resolver.site.envs[env]
    if key == "vmid":
        if "vmid" in guest.values:
            return guest.place(("vmid",), ("vm_id",)), ""
        base = loaded.model.vmid_base
        why = "assigned by Proxmox" if base is None else f"`vmid_base` + {guest.index}"
        return _locate_first(loaded.places, ("vmid_base",)), why
    if key == "auth_token":
        return _token_origin(resolver, env, guest)
    if card is not None and key in ("bridge", "vlan", "gateway"):
        return _card_origin(resolver, guest, card, key)
    return guest.place(*_PATHS.get(key, ((key,),))), ""


def _card_origin(
    resolver: ConfigResolver, guest: GuestEntry, card: NetworkCard, key: str
) -> tuple[Location | None, str]:
    site = resolver.site
    field = "gateway4" if key == "gateway" else key
    if key in guest.values:
        return card.place(guest, field), ""
    if card.network is not None and "network" in guest.values:
        written = "router" if key == "gateway" and card.network.model.gateway is None else key
        return card.network.place(written), f"the network '{card.network.name}'"
    if card.network is not None and card.gateway_source == "network" and key == "gateway":
        return card.network.place("gateway"), f"the network '{card.network.name}'"
    return _defaults(None if site.file is None else site.file.places, key), "the site's"


def _token_origin(resolver: ConfigResolver, env: str, guest: GuestEntry) -> tuple[Location | None, str]:
    posture = resolver.posture(resolver.site.envs[env].model.posture)
    secrets = resolver.site.secrets.places
    why = f"the posture '{posture.name}' says {posture.auth_method or AuthMethod.NETWORK}"
    if posture.auth_method is AuthMethod.SITE_TOKEN:
        return _locate_first(secrets, ("auth", "site_token")), why
    if posture.auth_method is AuthMethod.NODE_TOKEN:
        return _locate_first(secrets, ("auth", "node_tokens", guest.name)), why
    nested = posture.nested
    return (posture.place() if nested is None else nested.places.place(("auth", "method"))), why


def _ansible(resolver: ConfigResolver, env: str) -> Iterator[ExplainedValue]:
    site = resolver.site
    loaded = site.envs[env]
    posture = resolver.posture(loaded.model.posture)
    site_places = None if site.file is None else site.file.places
    origins: dict[str, tuple[Location | None, str]] = {
        "timezone": (_defaults(site_places, "timezone"), ""),
        "pve_remove_subscription_nag": (_defaults(site_places, "pve_remove_subscription_nag"), ""),
        "packages": (_defaults(site_places, "packages"), f"the site's, then those of '{posture.name}'"),
        "env_name": (loaded.places.place(), ""),
        "posture_name": (_locate_first(loaded.places, ("posture",)), ""),
        "ssh_authorized_keys": (_locate_first(site.secrets.places, ("ssh_keys",)), "all of `ssh_keys`"),
    }
    for key, value in resolver.resolve_ansible_vars(env).items():
        where, why = origins[key] if key in origins else (posture.read_setting(key)[1], f"'{posture.name}'")
        yield ExplainedValue(section="ansible", key=key, value=value, where=where, why=why)


def _code(resolver: ConfigResolver, env: str) -> Iterator[ExplainedValue]:
    """Return the folders of own code that join the configuration of an env, each with its files."""
    for folder in resolver.site.code.of(env):
        why = "for every env" if folder.label == EXTRA else ""
        yield ExplainedValue(
            section="own code",
            key=f"module.{folder.label}",
            value=list(folder.files),
            where=Location(folder.shown),
            why=why,
        )


def sections(values: Iterable[ExplainedValue]) -> dict[str, list[ExplainedValue]]:
    """Return values by what they belong to, in order."""
    result: dict[str, list[ExplainedValue]] = {}
    for value in values:
        result.setdefault(value.section, []).append(value)
    return result
