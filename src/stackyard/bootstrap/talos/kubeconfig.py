"""The kubeconfig of a cluster, from the first control plane node that gives one; and the API behind it."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.step import absent, present
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.kubernetes import KubernetesClient, parse_kubeconfig
from stackyard.clients.talos import TalosError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["KUBERNETES", "KubernetesStep", "fetch_kubeconfig", "kubernetes_of", "unpack_kubeconfig"]

KUBERNETES = "kubernetes"
_KUBECONFIG = "/machine.MachineService/Kubeconfig"


async def fetch_kubeconfig(controllers: tuple[ClusterNode, ...], access: TalosAccess) -> str:
    """Return a kubeconfig with a new certificate; each call makes another one.

    Raises:
        TalosError: No control plane node gives one; the reason is that of the last.
    """
    for number, node in enumerate(controllers, 1):
        try:
            async with access.open(node) as client:
                data = b"".join([chunk.bytes async for chunk in client.stream(_KUBECONFIG)])
            return unpack_kubeconfig(data)
        except TalosError:
            if number == len(controllers):
                raise
    raise ValueError("a cluster without control plane nodes")


@contextlib.asynccontextmanager
async def kubernetes_of(
    controllers: tuple[ClusterNode, ...], access: TalosAccess
) -> AsyncIterator[Callable[[], Awaitable[KubernetesClient]]]:
    """Give what returns the client of a cluster, opened when it is first asked for.

    The kubeconfig is in memory alone.
    """
    async with contextlib.AsyncExitStack() as stack:
        opened: list[KubernetesClient] = []
        lock = asyncio.Lock()

        async def open_client() -> KubernetesClient:
            async with lock:
                if not opened:
                    kubeconfig = await fetch_kubeconfig(controllers, access)
                    client = KubernetesClient(parse_kubeconfig(kubeconfig))
                    opened.append(await stack.enter_async_context(client))
            return opened[0]

        yield open_client


def unpack_kubeconfig(data: bytes) -> str:
    """Return the file in the archive that Talos sends: a tar without padding and without an end."""
    unpacked = gzip.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        # Whatever looks for a name reads on to an end that is not there.
        member = archive.next()
        if member is None:
            raise ValueError("the archive with the kubeconfig is empty")
        start = member.offset_data
    return unpacked[start : start + member.size].decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesStep:
    """Waits until the Kubernetes API answers at the address of the cluster.

    Attributes:
        controllers: The control plane nodes.
        access: The API of the nodes.
        timeout_s: How long it may take.
    """

    controllers: tuple[ClusterNode, ...]
    access: TalosAccess = field(repr=False)
    timeout_s: float = 600.0
    name: str = KUBERNETES

    async def look(self) -> Observation:
        """Ask the API for its version; see `Step.look`."""
        reason = await self._ask()
        return absent(reason) if reason else present()

    async def _ask(self) -> str:
        try:
            kubeconfig = await fetch_kubeconfig(self.controllers, self.access)
            async with KubernetesClient(parse_kubeconfig(kubeconfig)) as client:
                await client.read_version()
        except StackyardError as err:
            return err.detail
        return ""

    async def do(self, report: Report) -> None:
        """Do nothing but say so: Talos starts it by itself; see `Step.do`."""
        report("the control plane to start")

    async def prove(self, report: Report) -> None:
        """Wait until it answers; see `Step.prove`."""
        await wait_for(self._ask, what="the Kubernetes API", timeout_s=self.timeout_s, report=report)
