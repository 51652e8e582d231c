"""The domains of a node's certificate, in the configuration of the node and in that of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import parse, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackyard.provider.values import Object

__all__ = ["MOST_BY_PLUGIN", "SETTINGS", "by_plugin", "domain_settings", "read_account", "read_domains"]

# Proxmox has acmedomain0 to acmedomain5; bpg uses the first five.
MOST_BY_PLUGIN = 6
_SLOTS = tuple(f"acmedomain{number}" for number in range(MOST_BY_PLUGIN))
SETTINGS = ("acme", *_SLOTS)


def by_plugin(domains: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the domains that a plugin validates; the node itself answers for the others."""
    return [domain for domain in domains if domain.get("plugin")]


def domain_settings(account: str, domains: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters that set the account and domains of a node, and unset what was there."""
    plain = [str(domain["domain"]) for domain in domains if not domain.get("plugin")]
    settings = {"acme": render({"account": account, "domains": ";".join(plain) or None})}
    for slot, domain in zip(_SLOTS, by_plugin(domains), strict=False):
        more = {"alias": domain.get("alias") or None, "plugin": domain["plugin"]}
        settings[slot] = f"{domain['domain']},{render(more)}"
    return {**settings, "delete": ",".join(slot for slot in _SLOTS if slot not in settings) or None}


def read_account(config: Mapping[str, Any]) -> str | None:
    """Return the account in the configuration of a node; None where the node has no settings of ACME."""
    if config.get("acme") is None and not any(slot in config for slot in _SLOTS):
        return None
    return parse(config.get("acme") or "", "account").get("account", "default")


def read_domains(known: Any, config: Mapping[str, Any]) -> list[Object]:
    """Return the domains in the configuration of a node, in the order and spelling that are known."""
    found = _list_domains(config)
    written = [dict(domain) for domain in known or ()]
    if sorted(map(_key, written)) == sorted(map(_key, found)):
        return written
    return found


def _list_domains(config: Mapping[str, Any]) -> list[Object]:
    names = parse(config.get("acme") or "", "account").get("domains", "").split(";")
    plain = [{"domain": name, "plugin": None, "alias": None} for name in names if name]
    parsed = (parse(config[slot], "domain") for slot in _SLOTS if config.get(slot))
    return [
        *plain,
        *(
            {"domain": one["domain"], "plugin": one.get("plugin"), "alias": one.get("alias")}
            for one in parsed
        ),
    ]


def _key(domain: Mapping[str, Any]) -> tuple[str, str, str]:
    plugin = str(domain.get("plugin") or "")
    # Without a plugin there is no record of another domain to look at.
    return str(domain.get("domain")), plugin, str(domain.get("alias") or "") if plugin else ""
