"""HA groups: `/cluster/ha/groups`, for a cluster that has not migrated them to rules yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.ha.managed import LOCK
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.ha import config
from pvelab.world.ha.groups import GROUPS, are_migrated
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_group", "delete_group", "list_groups", "read_group", "update_group"]

_KIND = Kind(
    name="group",
    required=frozenset(("nodes",)),
    optional=frozenset(("comment", "nofailback", "restricted")),
)
_NOT_SETTINGS = frozenset(("group", "type", "digest", "delete"))


@route("GET /cluster/ha/groups")
def list_groups(call: Call) -> Any:
    """List the groups."""
    _require_groups(call, "index groups")
    return [_format_group(call, ident) for ident in call.store.items(GROUPS)]


@route("GET /cluster/ha/groups/{group}")
def read_group(call: Call) -> Any:
    """Answer one group."""
    _require_groups(call, "read group")
    return _format_group(call, str(call.params["group"]))


@route("POST /cluster/ha/groups")
def create_group(call: Call) -> Any:
    """Add a group."""
    _require_groups(call, "create group")
    call.world.cluster.require_quorum()
    ident = str(call.params["group"])
    settings = _KIND.validate(_read_group(call), create=True)
    with call.world.cluster.lock_file(LOCK, "create ha group failed"):
        if call.store.get(GROUPS, ident) is not None:
            raise PveError(f"ha group ID '{ident}' already defined")
        SectionFile(call.store, GROUPS).put(ident, settings)


@route("PUT /cluster/ha/groups/{group}")
def update_group(call: Call) -> Any:
    """Change a group; what is both set and removed is removed."""
    _require_groups(call, "update group")
    ident = str(call.params["group"])
    with call.world.cluster.lock_file(LOCK, "update ha group failed"):
        file = SectionFile(call.store, GROUPS)
        file.check_digest(call.params.get("digest"))
        old = file.get(ident)
        if old is None:
            raise PveError(f"no such ha group '{ident}'")
        changed = {**old, **_KIND.validate(_read_group(call), create=False)}
        file.put(ident, _KIND.without(changed, split_list(call.params.get("delete", "")), {}))


@route("DELETE /cluster/ha/groups/{group}")
def delete_group(call: Call) -> Any:
    """Remove a group that no resource uses; it need not be there."""
    _require_groups(call, "delete group")
    ident = str(call.params["group"])
    with call.world.cluster.lock_file(LOCK, "delete ha group failed"):
        for sid, resource in call.store.items(config.RESOURCES).items():
            if resource.get("group") == ident:
                raise PveError(f"ha group is used by service '{sid}'")
        SectionFile(call.store, GROUPS).remove(ident)


def _require_groups(call: Call, what: str) -> None:
    if are_migrated(call.store):
        raise PveError(f"cannot {what}: ha groups have been migrated to rules")


def _read_group(call: Call) -> dict[str, Any]:
    given = {key: value for key, value in call.params.items() if key not in _NOT_SETTINGS}
    if "nodes" in given:
        # Proxmox keeps the entries as a set; the order is of no importance.
        given["nodes"] = ",".join(dict.fromkeys(split_list(str(given["nodes"]))))
    return given


def _format_group(call: Call, ident: str) -> dict[str, Any]:
    found = call.store.get(GROUPS, ident)
    if found is None:
        raise PveError(f"no such ha group '{ident}'")
    return {**found, "group": ident, "digest": SectionFile(call.store, GROUPS).digest}
