"""The shared address of a cluster is free until etcd exists: Talos gives it to a node through etcd."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from ipaddress import IPv4Address

__all__ = ["AddressTakenError", "require_free"]

# A cluster of its own would answer at the first two; what else takes an address by mistake, at the others.
_KUBERNETES_PORTS = (6443, 50000)
_OTHER_PORTS = (443, 80, 22)
_TIMEOUT_S = 2.0


class AddressTakenError(StackyardError):
    """Something answers at the address of the Kubernetes API before the cluster can."""

    code = "E-CLUSTER-ADDRESS-TAKEN"
    summary = "The address of the Kubernetes API is taken"
    default_remedy = (
        "Choose an address that nothing uses for `cluster_api_addr`, or turn off what has it. If another "
        "cluster has it, its nodes and these would fight for it."
    )


async def require_free(address: IPv4Address) -> None:
    """Check that nothing answers at an address.

    A host that drops what it does not know stays unseen; so no answer proves nothing.

    Raises:
        AddressTakenError: Something does.
    """
    # A port that some service of this machine opens everywhere is open at each address of its loopback.
    ports = _KUBERNETES_PORTS if address.is_loopback else (*_KUBERNETES_PORTS, *_OTHER_PORTS)
    found = await asyncio.gather(*(_is_open(str(address), port) for port in ports))
    taken = [str(port) for port, is_open in zip(ports, found, strict=True) if is_open]
    if taken:
        raise AddressTakenError(
            f"Something answers at {address} (port {', '.join(taken)}), and this cluster has no etcd yet."
        )


async def _is_open(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
