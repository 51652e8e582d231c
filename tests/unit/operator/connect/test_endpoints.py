"""Each node is reached at its own address where it answers there with its own certificate."""

from __future__ import annotations

from tests.support.lab import lab_client
from tests.support.ports import free_port

from stackyard.operator.connect.endpoints import find_endpoints
from stackyard.operator.connect.survey import NodeSeen

OTHER = ":".join(["AB"] * 32)


def node(
    name: str, *, ip: str | None = "127.0.0.1", fingerprint: str | None, is_asked: bool = False
) -> NodeSeen:
    return NodeSeen(name=name, is_online=True, is_asked=is_asked, ip=ip, fingerprint=fingerprint)


async def test_the_node_that_was_asked_keeps_the_address_that_was_given() -> None:
    asked = node("pve1", fingerprint="CD", is_asked=True)
    found = await find_endpoints([asked], "https://pve.home:8006", OTHER)
    assert (found["pve1"].url, found["pve1"].fingerprint) == ("https://pve.home:8006", OTHER)


async def test_another_node_has_its_own_address_and_certificate() -> None:
    async with lab_client() as api:
        own = api.running.fingerprint
        url = f"https://localhost:{api.running.port}"
        found = await find_endpoints([node("pve2", fingerprint=own)], url, OTHER)
        assert found["pve2"].url == f"https://127.0.0.1:{api.running.port}"
        assert (found["pve2"].fingerprint, found["pve2"].note) == (own, "")


async def test_nothing_is_pinned_where_the_system_verifies_the_given_address() -> None:
    async with lab_client() as api:
        url = f"https://localhost:{api.running.port}"
        found = await find_endpoints([node("pve2", fingerprint=api.running.fingerprint)], url, None)
        assert (found["pve2"].url, found["pve2"].fingerprint) == (url, None)


async def test_an_address_with_another_certificate_is_not_used() -> None:
    async with lab_client() as api:
        url = f"https://localhost:{api.running.port}"
        found = await find_endpoints([node("pve2", fingerprint=OTHER)], url, "AA")
        assert (found["pve2"].url, found["pve2"].fingerprint) == (url, "AA")
        assert "shows another certificate" in found["pve2"].note


async def test_a_node_that_does_not_answer_from_here_is_reached_through_the_given_address() -> None:
    url = f"https://localhost:{free_port()}"
    seen = [node("pve2", fingerprint=OTHER), node("pve3", ip=None, fingerprint=None)]
    found = await find_endpoints(seen, url, "AA")
    assert {one.url for one in found.values()} == {url}
    assert "does not answer from here" in found["pve2"].note
    assert "hidden" in found["pve3"].note
