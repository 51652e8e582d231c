"""`proxmox_virtual_environment_certificate`: a certificate that is uploaded to a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.create_once import ObjectExistsError, create_object, note_seen
from stackyard.provider.kinds import Resource
from stackyard.provider.resources.certificates.custom import (
    custom_path,
    find_custom,
    fingerprint_of,
    leaf_of,
    read_moment,
    remove_custom,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


def _identity(state: Object) -> str:
    return f"{state['node_name']}_certificate"


def _state(known: Object, found: Mapping[str, Any]) -> Object:
    pem = str(found.get("pem") or "")
    # Proxmox shows the certificate of the server without the rest of its chain.
    is_same = leaf_of(known.get("certificate")) == leaf_of(pem)
    return {
        **known,
        "id": _identity(known),
        "certificate": known["certificate"] if is_same else pem,
        "expiration_date": read_moment(found.get("notafter")) or "",
        "file_name": found.get("filename") or "",
        "issuer": found.get("issuer") or "",
        "public_key_size": int(found.get("public-key-bits") or 0),
        "public_key_type": _key_type(str(found.get("public-key-type") or "")),
        "ssl_fingerprint": found.get("fingerprint") or "",
        "start_date": read_moment(found.get("notbefore")) or "",
        "subject": found.get("subject") or "",
        "subject_alternative_names": [str(name) for name in found.get("san") or ()],
    }


def _key_type(text: str) -> str:
    """Return the type of a key by its short name; others as Proxmox writes them, in the words of OpenSSL."""
    return next((short for short in ("ecdsa", "dsa", "rsa") if short in text), text)


async def _upload(work: Work, planned: Object, *, replaces: bool) -> None:
    chain = [str(planned.get(name) or "").strip() for name in ("certificate", "certificate_chain")]
    await work.client.post(
        custom_path(planned["node_name"]),
        {
            "certificates": "".join(f"{part}\n" for part in chain if part),
            "key": planned["private_key"],
            "force": replaces,
            "restart": True,
        },
        repeatable=replaces,
    )


async def _create(work: Work, planned: Object) -> Object:
    node = planned["node_name"]
    if planned.get("overwrite"):
        await _upload(work, planned, replaces=True)
    else:
        try:
            await create_object(
                work,
                _identity(planned),
                sent={"fingerprint": fingerprint_of(planned["certificate"])},
                make=lambda: _upload(work, planned, replaces=False),
                look=lambda: find_custom(work, node),
            )
        except ObjectExistsError as err:
            raise ObjectExistsError(
                f"The node {node} has a custom certificate already. {err.detail}",
                remedy=f"Set `overwrite = true` to replace it, or import it with the id {node}.",
            ) from err
    return _state(planned, await find_custom(work, node) or {})


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state))
    found = await find_custom(work, state["node_name"])
    return None if found is None else _state(state, found)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    await _upload(work, planned, replaces=True)
    return _state(planned, await find_custom(work, planned["node_name"]) or {})


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state))
    await remove_custom(work, state["node_name"])


def _same_text(prior: Any, config: Any) -> bool:
    return str(prior).strip() == str(config).strip()


RESOURCE = Resource(
    names=("proxmox_virtual_environment_certificate",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=lambda given: {"id": f"{given}_certificate", "node_name": given},
    rules={
        "certificate": Rule(same=_same_text),
        "certificate_chain": Rule(same=_same_text),
        "node_name": Rule(replace=True),
    },
)
