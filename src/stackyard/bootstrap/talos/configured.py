"""A node gets its configuration, and from then on answers to the certificate of its cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.bootstrap.step import absent, present, unknown
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import (
    TalosCertificateError,
    TalosError,
    TalosUnreachableError,
)
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["ConfiguredStep", "ForeignNodeError"]

_APPLY = "/machine.MachineService/ApplyConfiguration"


class ForeignNodeError(StackyardError):
    """A node answers at the address of one of ours, and belongs to another cluster."""

    code = "E-CLUSTER-FOREIGN-NODE"
    summary = "A node belongs to another cluster"
    default_remedy = (
        "Check the address in nodes.yaml. If the node is meant, reset it with the talosconfig of its "
        "cluster, or wipe its disk and boot it from the image."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredStep:
    """Gives a node its configuration, and waits until it runs with it.

    Attributes:
        node: The node.
        config: Its machine configuration.
        access: The API of the nodes.
        timeout_s: How long the installation may take.
    """

    node: ClusterNode
    config: str = field(repr=False)
    access: TalosAccess = field(repr=False)
    timeout_s: float = 900.0

    @property
    def name(self) -> str:
        """What the step is called."""
        return f"configure {self.node.name}"

    async def look(self) -> Observation:
        """See whether the node answers to the certificate of its cluster; see `Step.look`."""
        try:
            async with self.access.open(self.node) as client:
                await client.read_version()
        except TalosUnreachableError as err:
            return unknown(err.detail)
        except TalosError:
            # In maintenance mode it shows a certificate of its own; of another cluster, too.
            return await self._look_at_maintenance()
        return present()

    async def _look_at_maintenance(self) -> Observation:
        try:
            async with self.access.open_maintenance(self.node) as client:
                await client.list_disks()
        except TalosUnreachableError as err:
            return unknown(err.detail)
        except TalosError as err:
            raise ForeignNodeError(
                f"{self.node.name} ({self.node.address}) has a configuration, and does not accept the "
                f"certificate of this cluster: {err.detail}"
            ) from err
        return absent(f"{self.node.name} is in maintenance mode and has no configuration yet")

    async def do(self, report: Report) -> None:
        """Send the configuration; see `Step.do`.

        Raises:
            TalosRefusedError: The node refuses it, with its words.
        """
        report(f"{self.node.name} to accept its configuration")
        request = pb.ApplyConfigurationRequest(
            data=self.config.encode(), mode=pb.ApplyConfigurationRequest.AUTO
        )
        async with self.access.open_maintenance(self.node) as client:
            try:
                await client.call(_APPLY, request)
            except (TalosCertificateError, TalosUnreachableError):
                # The answer was lost, or an earlier run sent it: the node installs already.
                report(f"{self.node.name} no longer answers in maintenance mode")

    async def prove(self, report: Report) -> None:
        """Wait until it answers to the certificate of its cluster; see `Step.prove`."""

        async def is_up() -> str:
            try:
                async with self.access.open(self.node) as client:
                    await client.read_version()
            except TalosError as err:
                return f"{self.node.name} to install Talos and boot from its disk: {err.detail}"
            return ""

        await wait_for(is_up, what=f"{self.node.name} to run", timeout_s=self.timeout_s, report=report)
