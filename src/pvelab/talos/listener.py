"""Port 50000 of a Talos machine: where it listens on this machine, and the TLS that it speaks there.

A guest whose address is in 127.0.0.0/8 is reached at that address itself: Linux lets every user listen on all
of them. Any other address is no address of this machine; its port is on the address of the lab then, and the
lab forwards to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from typing import TYPE_CHECKING

from pvelab.faults.talos import SKEW_S, find_talos_fault
from pvelab.machines.machine import Endpoint
from pvelab.server.problems import defect
from pvelab.talos.hardware import list_addresses
from pvelab.talos.pki import MAINTENANCE_NAME, SERVER_LIFE_S, Period, issue, make_authority
from pvelab.talos.service import MaintenanceService, SecuredService
from stackyard.base.grpc_server import ClosingServer
from stackyard.base.serving.certificate import Certificate
from stackyard.base.serving.sockets import ListenError, listen
from stackyard.base.serving.tls import Tls, load_pair, server_context
from stackyard.talosapi.methods import PORT

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncIterator

    from pvelab.talos.machine import TalosMachine
    from pvelab.talos.service import TalosService

__all__ = ["Listener"]

# A certificate of such a life has expired when it is made.
_EXPIRED_S = -60.0


class Listener:
    """The API port of one machine.

    Args:
        machine: The machine.
    """

    def __init__(self, machine: TalosMachine) -> None:
        self._machine = machine
        self._server: ClosingServer | None = None
        self._service: TalosService | None = None
        self.address: tuple[str, int] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    def endpoint(self, port: int) -> Endpoint | None:
        """Return where a port is on this machine."""
        if port != PORT or self.address is None:
            return None
        return Endpoint(host=self.address[0], port=self.address[1])

    async def drain(self) -> None:
        """Wait until the calls under way have been answered."""
        if self._service is not None:
            await self._service.drain()

    async def close(self) -> None:
        """Stop listening and close all connections."""
        server, self._server, self.address = self._server, None, None
        if server is not None:
            self._machine.tell()
            await server.end()

    @contextlib.asynccontextmanager
    async def serve_maintenance(self) -> AsyncIterator[None]:
        """Answer as a machine without a configuration does, for the length of the block."""
        machine = self._machine
        kept = machine.state.get("authority")
        if kept is None:
            made = make_authority("talos")
            kept = {"crt": made.certificate_pem.decode(), "key": made.key_pem.decode()}
            machine.update(authority=kept)
        authority = Certificate(certificate_pem=kept["crt"].encode(), key_pem=kept["key"].encode())
        async with self._serve(MaintenanceService(machine), authority, MAINTENANCE_NAME):
            yield

    @contextlib.asynccontextmanager
    async def serve_secured(self) -> AsyncIterator[None]:
        """Answer callers with certificates of the OS CA, for the length of the block."""
        machine = self._machine
        authority = machine.guests.authority_of(machine)
        if authority is None:
            # No control plane machine is left that could sign; its API stays shut.
            yield
            return
        async with self._serve(SecuredService(machine), authority, machine.hostname, verify=True):
            yield

    @contextlib.asynccontextmanager
    async def _serve(
        self, service: TalosService, authority: Certificate, name: str, *, verify: bool = False
    ) -> AsyncIterator[None]:
        context = self._make_context(authority, name, verify=verify)
        await self._start(service, context, self._listen())
        beside = [
            asyncio.create_task(self._renew(context, authority, name)),
            asyncio.create_task(self._fall_silent(service, context)),
        ]
        try:
            yield
        finally:
            for task in beside:
                task.cancel()
            try:
                await asyncio.wait(beside)
            finally:
                await self.close()

    async def _start(self, service: TalosService, context: ssl.SSLContext, sock: socket.socket) -> None:
        server = ClosingServer([service])
        await server.start(sock=sock, ssl=context)
        host, port = sock.getsockname()[:2]
        self._server, self._service, self.address = server, service, (host, port)
        self._machine.tell()

    async def _fall_silent(self, service: TalosService, context: ssl.SSLContext) -> None:
        """Answer nobody while a fault makes the machine unreachable: connections are taken and left alone."""
        machine = self._machine
        while True:
            if machine.has_fault("unreachable"):
                await self.close()
                with self._listen() as silent:
                    while machine.has_fault("unreachable"):
                        await machine.guests.wait_change()
                    host, port = silent.getsockname()[:2]
                await self._start(service, context, listen(host, port))
            await machine.guests.wait_change()

    def _listen(self) -> socket.socket:
        machine = self._machine
        for address in list_addresses(machine.world, machine.guest):
            if ipaddress.ip_address(address) in ipaddress.ip_network("127.0.0.0/8"):
                try:
                    return listen(address, PORT)
                except ListenError as err:
                    # Another lab has a guest with the same address, as two machines of one network may.
                    defect(f"port {PORT} of the Talos machine {machine.vmid}", err)
        return listen(machine.world.machines.forwards.host, 0)

    def _make_context(self, authority: Certificate, name: str, *, verify: bool) -> ssl.SSLContext:
        authorities = authority.certificate_pem if verify else None
        tls = Tls(
            self._issue(authority, name),
            client_authorities_pem=authorities,
            require_client_certificate=verify,
        )
        context = server_context(tls)
        context.set_alpn_protocols(["h2"])
        return context

    def _issue(self, authority: Certificate, name: str) -> Certificate:
        machine = self._machine
        more = [] if machine.config is None else machine.config.names
        hosts = [*list_addresses(machine.world, machine.guest), name, machine.hostname, *more]
        pair = issue(authority, name=name, hosts=[*hosts, "127.0.0.1"], period=self._find_period())
        return Certificate(
            certificate_pem=pair.certificate_pem + authority.certificate_pem, key_pem=pair.key_pem
        )

    def _find_period(self) -> Period:
        """Return when a certificate of the machine is good: by its own clock."""
        machine = self._machine
        ahead = find_talos_fault(machine.world.store, "clock-skew", machine.vmid)
        return Period(
            life_s=_EXPIRED_S if machine.has_fault("certificate-expired") else SERVER_LIFE_S,
            ahead_s=0.0 if ahead is None else float(ahead.get("seconds", SKEW_S)),
        )

    async def _renew(self, context: ssl.SSLContext, authority: Certificate, name: str) -> None:
        """Show a new certificate from the half of the life of the last one on, and when a fault wants it."""
        machine = self._machine
        while True:
            shown = self._find_period()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SERVER_LIFE_S / 2):
                    while self._find_period() == shown:
                        await machine.guests.wait_change()
            load_pair(context, self._issue(authority, name))
