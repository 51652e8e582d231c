"""Options of the firewalls; what is not set is not told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.guests import digest_of
from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import bad_parameter
from stackyard.lab.resources.firewall.config import CLUSTER, Entry, editing, reading, scope_of
from stackyard.lab.routing import route
from stackyard.lab.sections import check_digest

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["read_options", "update_options"]

_NOT_OPTIONS = frozenset(("node", "vmid", "vnet", "delete", "digest"))
# A firewall that was switched on for a trial switches itself off unless it is confirmed by then.
_TRIAL_S = 60
_ROUTES = {
    "cluster": "PUT /cluster/firewall/options",
    "host": "PUT /nodes/{node}/firewall/options",
    "vm": "PUT /nodes/{node}/qemu/{vmid}/firewall/options",
    "ct": "PUT /nodes/{node}/lxc/{vmid}/firewall/options",
    "vnet": "PUT /cluster/sdn/vnets/{vnet}/firewall/options",
}


@route(
    "GET /cluster/firewall/options",
    "GET /nodes/{node}/firewall/options",
    "GET /nodes/{node}/qemu/{vmid}/firewall/options",
    "GET /nodes/{node}/lxc/{vmid}/firewall/options",
    "GET /cluster/sdn/vnets/{vnet}/firewall/options",
)
def read_options(call: Call) -> Any:
    """Answer the options that are set, and their digest."""
    options = _current(call, reading(call).options)
    return {**options, "digest": digest_of(options)}


@route(
    "PUT /cluster/firewall/options",
    "PUT /nodes/{node}/firewall/options",
    "PUT /nodes/{node}/qemu/{vmid}/firewall/options",
    "PUT /nodes/{node}/lxc/{vmid}/firewall/options",
    "PUT /cluster/sdn/vnets/{vnet}/firewall/options",
)
def update_options(call: Call) -> None:
    """Unset and set options."""
    scope = scope_of(call)
    known = call.world.facts[_ROUTES[scope.environment]].parameters.keys() - _NOT_OPTIONS
    given = {key: value for key, value in call.params.items() if key in known}
    if scope is CLUSTER and given.get("enable", 0) > 1:
        given["enable"] = call.now()
    with editing(call) as config:
        options = _current(call, config.options)
        check_digest(digest_of(options), call.params.get("digest"))
        for name in split_list(call.params.get("delete", "")):
            if name not in known:
                raise bad_parameter("delete", f"no such option '{name}'")
            options.pop(name, None)
        config.options = {**options, **given}


def _current(call: Call, options: Entry) -> Entry:
    enable = options.get("enable", 0)
    if enable > 1 and call.now() - enable > _TRIAL_S:
        return {**options, "enable": 0}
    return options
