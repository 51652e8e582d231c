"""Options of the firewalls; what is not set is not told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.config import CLUSTER, Entry, edit_config, read_config, scope_of, with_digest
from pvelab.api.firewall.paths import SCOPES, everywhere
from pvelab.server.params.texts import split_list
from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["read_options", "update_options"]

_NOT_OPTIONS = frozenset(("node", "vmid", "vnet", "delete", "digest"))
# A firewall that was switched on for a trial switches itself off unless it is confirmed by then.
_TRIAL_S = 60


@route(*everywhere("GET options"))
def read_options(call: Call) -> Any:
    """Answer the options that are set, and their digest."""
    options = _current(call, read_config(call).options)
    return with_digest([options])[0][0]


@route(*everywhere("PUT options"))
def update_options(call: Call) -> None:
    """Unset and set options."""
    scope = scope_of(call)
    declared = call.world.facts[f"PUT {SCOPES[scope.environment]}/firewall/options"]
    known = declared.parameters.keys() - _NOT_OPTIONS
    given = {key: value for key, value in call.params.items() if key in known}
    if scope is CLUSTER and given.get("enable", 0) > 1:
        given["enable"] = call.now()
    with edit_config(call) as config:
        options = _current(call, config.options)
        check_digest(with_digest([options])[1], call.params.get("digest"))
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
