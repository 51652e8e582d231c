"""The configuration of a node: `/nodes/{node}/config`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.digests import digest_of
from pvelab.world.sections import SectionFile, check_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["load_config", "read_config", "write_config"]

_DECLARED_AT = "PUT /nodes/{node}/config"
_MOST_DOMAINS = 6
_NOT_CONFIG = frozenset(("node", "delete", "digest"))


@route("GET /nodes/{node}/config")
def read_config(call: Call) -> Any:
    """Read all settings that were set, or one of them."""
    config = _format_config(load_config(call, call.node))
    wanted = call.params.get("property")
    if wanted is None:
        return config
    return {wanted: config[wanted]} if wanted in config else {}


@route("PUT /nodes/{node}/config")
def write_config(call: Call) -> Any:
    """Set and remove settings."""
    config = dict(load_config(call, call.node))
    check_digest(str(_format_config(config).get("digest", "")), call.params.get("digest") if config else None)
    config.update({key: value for key, value in call.params.items() if key not in _NOT_CONFIG})
    for key in split_list(call.params.get("delete", "")):
        config.pop(key, None)
    _check_domains(call, config)
    kept: dict[str, Any] = {}
    for key, value in config.items():
        if key == "description":
            # It is a comment in the file: whole lines, and none where there is no text.
            if value:
                kept[key] = "".join(f"{line.rstrip()}\n" for line in str(value).rstrip("\n").split("\n"))
        elif "\n" in str(value):
            raise PveError(f"detected invalid newline inside property '{key}'")
        else:
            # The file has no types, so numbers come back as text.
            kept[key] = str(value)
    call.world.cluster.require_writable(f"nodes/{call.node}/config")
    call.store.put("node_config", call.node, dict(sorted(kept.items())))


def load_config(call: Call, node: str) -> Mapping[str, Any]:
    """Return the settings of a node that were set."""
    return call.store.get("node_config", node) or {}


def _format_config(config: Mapping[str, Any]) -> dict[str, Any]:
    if not config:
        return {}
    # A file without comments has an empty description.
    return {"description": "", **config, "digest": digest_of(dict(config))}


def _check_domains(call: Call, config: Mapping[str, Any]) -> None:
    """Refuse a domain that is to be in the certificate twice, or validated by what does not exist."""
    taken: dict[str, str] = {}
    if "acme" in config:
        schema = call.world.facts.schema(_DECLARED_AT, "acme")["format"]
        domains = properties.parse(schema, str(config["acme"])).get("domains", "")
        for domain in filter(None, re.split(";", str(domains).lower())):
            if domain in taken:
                raise PveError(f"duplicate domain '{domain}' in ACME config properties")
            taken[domain] = "acme"
    schema = call.world.facts.schema(_DECLARED_AT, "acmedomain[n]")["format"]
    plugins = SectionFile(call.store, "acme_plugins").all()
    for key in (f"acmedomain{number}" for number in range(_MOST_DOMAINS)):
        if key not in config:
            continue
        parsed = properties.parse(schema, str(config[key]))
        domain, plugin = str(parsed["domain"]).lower(), parsed.get("plugin", "standalone")
        if domain in taken:
            where = f"ACME config properties '{key}' and '{taken[domain]}'"
            raise PveError(f"duplicate domain '{domain}' in {where}")
        if plugin != "standalone" and plugin not in plugins:
            raise PveError(f"plugin '{plugin}' for domain '{domain}' not found!")
        taken[domain] = key
