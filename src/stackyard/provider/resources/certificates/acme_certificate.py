"""`proxmox_acme_certificate`: a certificate that a node orders from a certificate authority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import ObjectExistsError, create_object, note_seen
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.resources.certificates.custom import find_custom, read_moment, remove_custom
from stackyard.provider.resources.certificates.domains import (
    MOST_BY_PLUGIN,
    SETTINGS,
    by_plugin,
    domain_settings,
    read_account,
    read_domains,
)
from stackyard.provider.resources.certificates.tasks import await_running, run_task
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_KIND = "acmenewcert"


def _node(state: Object) -> str:
    return f"/nodes/{proxmox.quote(state['node_name'])}"


async def _order(work: Work, planned: Object, *, replaces: bool) -> None:
    """Write the account and domains to the node, and order a certificate for them."""
    await work.client.put(f"{_node(planned)}/config", domain_settings(planned["account"], planned["domains"]))
    path = f"{_node(planned)}/certificates/acme/certificate"
    await run_task(work, _KIND, lambda: work.client.post(path, {"force": replaces}))


async def _find(work: Work, state: Object) -> Object | None:
    """Return the certificate of a node, with the account and domains that the node has for it."""
    found = await find_custom(work, state["node_name"])
    if found is None:
        return None
    config = await work.client.get(f"{_node(state)}/config")
    return {
        "account": read_account(config),
        "domains": read_domains(state.get("domains"), config),
        **_certificate_values(found),
    }


def _certificate_values(found: Mapping[str, Any]) -> Object:
    names = found.get("san")
    return {
        "certificate": found.get("pem"),
        "fingerprint": found.get("fingerprint"),
        "issuer": found.get("issuer"),
        "subject": found.get("subject"),
        "not_after": read_moment(found.get("notafter")),
        "not_before": read_moment(found.get("notbefore")),
        "subject_alternative_names": None if names is None else [str(name) for name in names],
    }


async def _create(work: Work, planned: Object) -> Object:
    if planned.get("force"):
        await _order(work, planned, replaces=True)
    else:
        await _order_once(work, planned)
    return await _read_back(work, planned)


async def _order_once(work: Work, planned: Object) -> None:
    node = str(planned["node_name"])
    sent = domain_settings(planned["account"], planned["domains"])

    async def look() -> Mapping[str, Any] | None:
        await await_running(work, _KIND)
        if await find_custom(work, node) is None:
            return None
        return dict(await work.client.get(f"{_node(planned)}/config"))

    try:
        await create_object(
            work,
            node,
            sent={name: value for name, value in sent.items() if name in SETTINGS},
            make=lambda: _order(work, planned, replaces=False),
            look=look,
        )
    except ObjectExistsError as err:
        raise ObjectExistsError(
            f"The node {node} has a custom certificate already. {err.detail}",
            remedy=f"Set `force = true` to replace it, or import it with the id {node}.",
        ) from err


async def _read_back(work: Work, planned: Object) -> Object:
    state = {**planned, "id": planned["node_name"]}
    return {**state, **(await _find(work, planned) or {})}


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, str(state["node_name"]))
    found = await _find(work, state)
    return None if found is None else {**state, "id": state["node_name"], **found}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    is_other = any(planned[name] != prior.get(name) for name in ("account", "domains"))
    if is_other or planned.get("force"):
        # The certificate that is there is the one of this resource. bpg is refused here without `force`.
        await _order(work, planned, replaces=True)
    return await _read_back(work, planned)


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, str(state["node_name"]))
    await remove_custom(work, state["node_name"])
    await work.client.put(f"{_node(state)}/config", {"delete": ",".join(SETTINGS)})


def _check_domains(domains: Any) -> str | None:
    if not domains:
        return "must name a domain"
    if len(by_plugin(one for one in domains if isinstance(one, dict))) > MOST_BY_PLUGIN:
        return f"may have at most {MOST_BY_PLUGIN} domains with a plugin"
    return None


RESOURCE = Resource(
    names=both_names("acme_certificate"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=lambda given: {"id": given, "node_name": given, "force": False},
    rules={
        "id": Rule(keep=True),
        "node_name": Rule(replace=True),
        "domains": Rule(check=_check_domains),
        "force": Rule(default=False),
    },
)
