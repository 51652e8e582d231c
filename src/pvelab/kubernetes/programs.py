"""A real kube-apiserver with etcd, as an ordinary user, on ports of this machine."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from cryptography.hazmat.primitives import serialization

from pvelab.kubernetes.authority import make_key
from stackyard.base import files, process
from stackyard.base.backoff import Backoff
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from pvelab.kubernetes.authority import Authority

__all__ = ["KubernetesStartError", "Programs", "run_programs", "write_server_certificate"]

_HERE = "127.0.0.1"
_STARTED_S = 120.0
_GRACE_S = 5.0
_LAST_LINES = 20
# A kube-apiserver tells no one when it is ready.
_LOOKS = Backoff(first_s=0.1, longest_s=0.3)


class KubernetesStartError(StackyardError):
    """kube-apiserver or etcd ended, or was not ready in time."""

    code = "E-LAB-KUBERNETES"
    summary = "The lab's Kubernetes does not start"
    default_remedy = "Read the last lines of its output, which the error quotes."


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The programs of a real API.

    Attributes:
        apiserver: kube-apiserver.
        etcd: etcd.
    """

    apiserver: Path
    etcd: Path


@contextlib.asynccontextmanager
async def run_programs(
    programs: Programs, folder: Path, authority: Authority, names: tuple[str, ...]
) -> AsyncIterator[str]:
    """Run both until the end of the block; give the address of the API when it is ready.

    Raises:
        KubernetesStartError: One of them ends or does not get ready.
    """
    _write_keys(folder, authority, names)
    with _reserve_ports(3) as (api_port, client_port, peer_port):
        etcd = _Program(_etcd_arguments(programs, folder, client_port, peer_port), folder)
        apiserver = _Program(_apiserver_arguments(programs, folder, client_port, api_port), folder)
        async with etcd.run(), apiserver.run():
            url = f"https://{_HERE}:{api_port}"
            await _wait_until_ready(url, folder, (etcd, apiserver))
            yield url


@contextlib.contextmanager
def _reserve_ports(count: int) -> Iterator[list[int]]:
    """Give free ports, and hold them: the programs share a port with a socket that does not listen."""
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            held = stack.enter_context(socket.socket())
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind((_HERE, 0))
            ports.append(held.getsockname()[1])
        yield ports


def _write_keys(folder: Path, authority: Authority, names: tuple[str, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_server_certificate(folder, authority, names)
    client = authority.issue_client("admin", ("system:masters",))
    accounts = make_key()
    for name, data in (
        ("ca.crt", authority.certificate_pem),
        ("client.crt", client.certificate_pem),
        ("client.key", client.key_pem),
    ):
        files.replace_file(folder / name, data)
    if not (folder / "accounts.key").exists():
        private = accounts.private_bytes(
            # Kubernetes reads public keys out of this form only.
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        files.replace_file(folder / "accounts.key", private)


def write_server_certificate(folder: Path, authority: Authority, names: tuple[str, ...]) -> None:
    """Write a new certificate with these names, which a kube-apiserver that runs shows from then on."""
    server = authority.issue_server((*dict.fromkeys(names),))
    files.replace_file(folder / "server.crt", server.certificate_pem)
    files.replace_file(folder / "server.key", server.key_pem)


def _etcd_arguments(programs: Programs, folder: Path, client_port: int, peer_port: int) -> tuple[str, ...]:
    peer, client = f"https://{_HERE}:{peer_port}", f"https://{_HERE}:{client_port}"
    return (
        str(programs.etcd),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--cert-file=server.crt",
        "--key-file=server.key",
        "--trusted-ca-file=ca.crt",
        "--client-cert-auth",
        "--peer-cert-file=server.crt",
        "--peer-key-file=server.key",
        "--peer-trusted-ca-file=ca.crt",
        "--enable-grpc-gateway=false",
        "--socket-reuse-port",
        # The lab's clusters need not survive a loss of power.
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def _apiserver_arguments(programs: Programs, folder: Path, etcd_port: int, port: int) -> tuple[str, ...]:
    del folder
    return (
        str(programs.apiserver),
        f"--etcd-servers=https://{_HERE}:{etcd_port}",
        "--etcd-cafile=ca.crt",
        "--etcd-certfile=client.crt",
        "--etcd-keyfile=client.key",
        f"--bind-address={_HERE}",
        f"--advertise-address={_HERE}",
        f"--secure-port={port}",
        "--permit-port-sharing",
        "--tls-cert-file=server.crt",
        "--tls-private-key-file=server.key",
        "--client-ca-file=ca.crt",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=accounts.key",
        "--service-account-signing-key-file=accounts.key",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--anonymous-auth=false",
        # Without a controller manager no namespace gets its account.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    )


class _Program:
    """A program that runs beside us, with the last lines that it wrote."""

    def __init__(self, argv: tuple[str, ...], folder: Path) -> None:
        self._command = process.Command(
            argv=argv, env=process.environment(), cwd=folder, grace_s=_GRACE_S, keeps_output=False
        )
        self._lines: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self.task: asyncio.Task[process.Completed] | None = None

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        self.task = asyncio.create_task(process.run(self._command, on_line=self._keep, check=False))
        try:
            yield
        finally:
            self.task.cancel()
            # The end that we asked for is no failure.
            await asyncio.gather(self.task, return_exceptions=True)

    def _keep(self, _: process.Stream, line: str) -> None:
        self._lines.append(line)

    def describe(self) -> str:
        """Return its name and its last lines."""
        return "\n".join((self._command.argv[0], *self._lines))


async def _wait_until_ready(url: str, folder: Path, programs: tuple[_Program, ...]) -> None:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    ready = asyncio.create_task(_ask_until_ready(url, context))
    waited = [ready, *(program.task for program in programs if program.task is not None)]
    try:
        await asyncio.wait(waited, timeout=_STARTED_S, return_when=asyncio.FIRST_COMPLETED)
        for program in programs:
            if program.task is not None and program.task.done():
                raise KubernetesStartError(f"It has ended: {program.describe()}")
        if not ready.done():
            shown = "\n".join(program.describe() for program in programs)
            raise KubernetesStartError(f"It was not ready within {_STARTED_S:.0f} s: {shown}")
    finally:
        ready.cancel()
        await asyncio.gather(ready, return_exceptions=True)


async def _ask_until_ready(url: str, context: ssl.SSLContext) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        for pause_s in _LOOKS:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with session.get(f"{url}/readyz", timeout=aiohttp.ClientTimeout(total=5.0)) as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(pause_s)
