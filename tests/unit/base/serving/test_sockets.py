"""Addresses to listen on."""

from __future__ import annotations

import socket

import pytest
from tests.unit.base.serving.clients import connected, echo, localhost_certificate, run

from stackyard.base.serving import AddressForbiddenError, AddressInUseError, ListenError, Tls, serve
from stackyard.base.serving.sockets import _refusal


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


def test_server_knows_where_it_listens() -> None:
    async def main() -> None:
        async with serve(echo) as server:
            assert server.host == "127.0.0.1"
            assert server.port > 0
            assert server.url == f"http://127.0.0.1:{server.port}"
            assert server.fingerprint is None

    run(main())


def test_tls_shows_in_the_url() -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        async with serve(echo, bind="0.0.0.0", tls=Tls(certificate)) as server:
            assert server.url == f"https://127.0.0.1:{server.port}"
            assert server.fingerprint == certificate.fingerprint

    run(main())


@needs_ipv6
def test_ipv6_is_served() -> None:
    async def main() -> None:
        async with serve(echo, bind="::1") as server, connected(server) as client:
            assert server.url == f"http://[::1]:{server.port}"
            assert (await client.get()).status == 200

    run(main())


@needs_ipv6
def test_ipv6_wildcard_serves_ipv4_too() -> None:
    async def main() -> None:
        async with serve(echo, bind="::") as server:
            for address in ("127.0.0.1", "::1"):
                with socket.create_connection((address, server.port)):
                    pass
            assert server.url == f"http://[::1]:{server.port}"

    run(main())


def test_host_name_is_resolved() -> None:
    async def main() -> None:
        async with serve(echo, bind="localhost") as server, connected(server) as client:
            assert (await client.get()).status == 200

    run(main())


def test_port_in_use_is_named() -> None:
    async def main() -> None:
        async with serve(echo) as server:
            with pytest.raises(AddressInUseError, match=f"127.0.0.1:{server.port}"):
                async with serve(echo, port=server.port):
                    pass

    run(main())


def test_port_can_be_used_again_at_once() -> None:
    async def main() -> None:
        async with serve(echo) as first, connected(first) as client:
            await client.get()
        async with serve(echo, port=first.port) as second, connected(second) as client:
            assert (await client.get()).status == 200

    run(main())


@pytest.mark.parametrize("bind", ["192.0.2.1", "no such host", "host.invalid", "\udcff"])
def test_foreign_address_is_named(bind: str) -> None:
    async def main() -> None:
        with pytest.raises(ListenError) as caught:
            async with serve(echo, bind=bind, port=8006):
                pass
        assert f"{bind}:8006" in caught.value.detail

    run(main())


def test_impossible_port_is_named() -> None:
    async def main() -> None:
        with pytest.raises(ListenError, match="99999"):
            async with serve(echo, port=99999):
                pass

    run(main())


def test_forbidden_port_has_its_own_error() -> None:
    # Asked of the system only where it would refuse; here its refusal is what counts.
    error = _refusal(PermissionError(13, "Permission denied"), "0.0.0.0:443")
    assert isinstance(error, AddressForbiddenError)
    assert "0.0.0.0:443" in error.detail
    assert error.remedy


def test_bound_socket_is_taken_over() -> None:
    async def main() -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        async with serve(echo, bind=sock) as server, connected(server) as client:
            assert server.port == port
            assert (await client.get()).status == 200
        assert sock.fileno() == -1

    run(main())


def test_socket_that_is_not_tcp_is_refused() -> None:
    async def main() -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with pytest.raises(ListenError, match="not a TCP socket"):
            async with serve(echo, bind=sock):
                pass
        assert sock.fileno() == -1

    run(main())
