"""Taking users and groups over from a directory server: `POST /access/domains/{realm}/sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.access.realms import unreachable
from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task

__all__ = ["sync_realm"]


@route("POST /access/domains/{realm}/sync")
def sync_realm(call: Call) -> Any:
    """Start the task; it ends where it would connect, since there is no directory server in the lab."""
    realm = call.params["realm"]
    config = call.store.get("realms", realm)
    if config is None:
        raise bad_parameter("realm", "Realm does not exist.")
    if config["type"] not in ("ldap", "ad"):
        raise PveError(f"Cannot sync realm type '{config['type']}'! Only LDAP/AD realms can be synced.")
    defaults = properties.parse(
        PROPERTY_FORMATS["realm-sync-options"], config.get("sync-defaults-options", "")
    )
    if not {**defaults, **call.params}.get("scope"):
        raise bad_parameter("scope", "Not passed as parameter and not defined in realm default sync options.")
    dry = bool(call.params.get("dry-run"))

    async def work(task: Task) -> None:
        task.log(f"{'(dry test run) ' if dry else ''}starting sync for realm {realm}")
        raise unreachable(config)

    return call.start_task("auth-realm-sync-test" if dry else "auth-realm-sync", realm, work)
