"""The custom certificate of a node: uploaded or ordered, shown and removed in the same way."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import re
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work

__all__ = ["custom_path", "find_custom", "fingerprint_of", "leaf_of", "read_moment", "remove_custom"]

# Reads of several certificates in one refresh share the list of their node.
_LIST_AGE_S = 0.5
_CUSTOM = "pveproxy-ssl.pem"
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def custom_path(node: Any) -> str:
    """Return where the custom certificate of a node is uploaded."""
    return f"/nodes/{proxmox.quote(node)}/certificates/custom"


async def find_custom(work: Work, node: Any) -> Mapping[str, Any] | None:
    """Return what Proxmox shows of a node's custom certificate; None if the node has none."""
    path = f"/nodes/{proxmox.quote(node)}/certificates/info"
    listed = await work.client.get(path, max_age_s=_LIST_AGE_S)
    return next((row for row in listed if row.get("filename") == _CUSTOM), None)


async def remove_custom(work: Work, node: Any) -> None:
    """Remove the custom certificate of a node, which then uses its own; there need not be one."""
    await work.client.delete(custom_path(node), {"restart": True})


def leaf_of(pem: Any) -> str:
    """Return the base64 text of the first certificate in a chain, without its line breaks."""
    found = _BLOCK.search(str(pem or ""))
    return "" if found is None else "".join(found[1].split())


def fingerprint_of(pem: Any) -> str:
    """Return the fingerprint of the first certificate in a chain, as Proxmox writes it."""
    try:
        content = base64.b64decode(leaf_of(pem))
    except binascii.Error:
        return ""
    return hashlib.sha256(content).digest().hex(":").upper()


def read_moment(seconds: Any) -> str | None:
    """Return a moment as in RFC 3339."""
    if seconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
