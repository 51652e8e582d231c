"""A node gets its configuration, and from then on answers to the certificate of its cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.bootstrap.step import absent, present, unknown
from stackyard.bootstrap.talos.identity import describe_disks, require_node
from stackyard.bootstrap.talos.wait import BootTimeoutError, wait_for
from stackyard.clients.talos import (
    TalosCertificateError,
    TalosClockError,
    TalosError,
    TalosUnreachableError,
)
from stackyard.path.clusters.nodes import read_disk
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from stackyard.base.redaction import Redactor
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.clients.talos import TalosClient
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["ConfiguredStep", "ForeignNodeError", "NotInstalledError"]

# Talos closes maintenance mode within five seconds.
_LEAVES_S = 10.0
_TRIES = 3
_APPLY = "/machine.MachineService/ApplyConfiguration"


class ForeignNodeError(StackyardError):
    """A node answers at the address of one of ours, and belongs to another cluster."""

    code = "E-CLUSTER-FOREIGN-NODE"
    summary = "A node belongs to another cluster"
    default_remedy = (
        "Check the address in nodes.yaml. If the node is meant, reset it with the talosconfig of its "
        "cluster, or wipe its disk and boot it from the image."
    )


class NotInstalledError(StackyardError):
    """A node took its configuration, rebooted, and is in maintenance mode again."""

    code = "E-CLUSTER-NOT-INSTALLED"
    summary = "Talos was not installed on a node"
    default_remedy = (
        "Its console says why. Mostly the install disk is another one, or the node boots from the image and "
        "not from that disk. Correct it, and run the command again."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredStep:
    """Gives a node its configuration, and waits until it runs with it.

    Attributes:
        node: The node.
        config: Its machine configuration.
        access: The API of the nodes.
        disk: Where the configuration installs Talos: a path, or a serial number; empty if that is unknown.
        timeout_s: How long the installation may take.
        redactor: Hides the secrets of the configuration in what the node says of it.
    """

    node: ClusterNode
    config: str = field(repr=False)
    access: TalosAccess = field(repr=False)
    disk: str = ""
    timeout_s: float = 900.0
    redactor: Redactor = field(default=NOTHING_SECRET, repr=False)
    # The certificates of maintenance mode that the configuration was sent to: each boot has its own.
    _sent_to: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def name(self) -> str:
        """What the step is called."""
        return f"configure {self.node.name}"

    async def look(self) -> Observation:
        """See whether the node answers to the certificate of its cluster; see `Step.look`."""
        try:
            async with self.access.open(self.node) as client:
                await client.read_version()
        except (TalosUnreachableError, TalosClockError) as err:
            return unknown(err.detail)
        except TalosError as err:
            # In maintenance mode it shows a certificate of its own; of another cluster, too.
            return await self._look_at_maintenance(err)
        return present()

    async def _look_at_maintenance(self, refusal: TalosError) -> Observation:
        try:
            async with self.access.open_maintenance(self.node) as client:
                await client.list_disks()
        except TalosUnreachableError as err:
            return unknown(err.detail)
        except TalosError as err:
            raise ForeignNodeError(
                f"{self.node.name} ({self.node.address}) has a configuration, and does not accept the "
                f"certificate of this cluster: {refusal.detail}"
            ) from err
        return absent(f"{self.node.name} is in maintenance mode and has no configuration yet")

    async def do(self, report: Report) -> None:
        """Send the configuration to the machine that is the node; see `Step.do`.

        Raises:
            OtherMachineError: Another machine answers at its address.
            InstallDiskError: It does not have its install disk.
            TalosRefusedError: The node refuses the configuration, with its words.
        """
        report(f"{self.node.name} to accept its configuration")
        for _ in range(_TRIES):
            # One connection: what it said of itself holds for the machine that gets the secrets.
            async with self.access.open_maintenance(self.node) as client:
                try:
                    await require_node(self.node, client, disk=self.disk)
                    await self._send(client, report)
                    return
                except (TalosCertificateError, TalosUnreachableError):
                    # The answer was lost, or an earlier run sent it: the node installs already.
                    report(f"{self.node.name} no longer answers in maintenance mode")
            if await self._has_left(report):
                return

    async def _has_left(self, report: Report) -> bool:
        """Return whether it left the maintenance mode that the configuration was sent to.

        One that stays, far longer than Talos takes to leave, did not get it.
        """

        async def look() -> str:
            try:
                async with self.access.open_maintenance(self.node) as client:
                    await client.list_disks()
                    is_same = client.fingerprint in self._sent_to
            except TalosError:
                return ""
            return f"{self.node.name} to leave maintenance mode" if is_same else ""

        try:
            await wait_for(look, what="the end of maintenance mode", timeout_s=_LEAVES_S, report=report)
        except BootTimeoutError:
            return False
        return True

    async def _send(self, client: TalosClient, report: Report) -> None:
        request = pb.ApplyConfigurationRequest(
            data=self.config.encode(), mode=pb.ApplyConfigurationRequest.AUTO
        )
        if client.fingerprint is not None:
            self._sent_to.add(client.fingerprint)
        answer = await client.call(_APPLY, request, redactor=self.redactor)
        for message in answer.messages:
            for warning in message.warnings:
                report(self.redactor(f"{self.node.name}, which warns: {warning}"))

    async def prove(self, report: Report) -> None:
        """Wait until it answers to the certificate of its cluster; see `Step.prove`.

        Raises:
            NotInstalledError: It is in maintenance mode again.
        """

        async def is_up() -> str:
            try:
                async with self.access.open(self.node) as client:
                    await client.read_version()
            except (TalosUnreachableError, TalosClockError) as err:
                return f"{self.node.name} to install Talos and boot from its disk: {err.detail}"
            except TalosError as err:
                await self._require_not_back()
                return f"{self.node.name} to install Talos and boot from its disk: {err.detail}"
            return ""

        await wait_for(is_up, what=f"{self.node.name} to run", timeout_s=self.timeout_s, report=report)

    async def _require_not_back(self) -> None:
        """Check that it is not in the maintenance mode of another boot than the one that was configured."""
        try:
            async with self.access.open_maintenance(self.node) as client:
                disks = tuple(read_disk(one) for one in await client.list_disks())
                seen = client.fingerprint
        except TalosError:
            return
        if self._sent_to and seen not in self._sent_to:
            raise NotInstalledError(
                f"{self.node.name} ({self.node.address}) took its configuration, rebooted, and is in "
                f"maintenance mode again. It is to be installed on {self.disk or 'the disk of its patches'}, "
                f"and has {describe_disks(disks)}."
            )
