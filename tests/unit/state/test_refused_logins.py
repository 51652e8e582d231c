"""What the audit log says of refused logins: the first ones, then counts, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stackyard.clients.objects import MemoryObjects, StoreError
from stackyard.state import StateService
from stackyard.state.http.refused_logins import AuditPace, RefusedLogins
from stackyard.state.model import AuditAction

SHORT = AuditPace(each=2, most=6, addresses=3, interval_s=0.01, longest_s=0.02)
NEVER = AuditPace(each=2, most=6, addresses=3, interval_s=1000.0)


async def at_once(function: Callable[[], None]) -> None:
    function()


def noted(service: StateService) -> list[tuple[str, str]]:
    return [
        (entry.address, entry.detail)
        for entry in service.audit.entries("")
        if entry.action is AuditAction.LOGIN_REFUSED
    ]


def test_the_first_of_an_address_are_entries_and_the_rest_is_one_count() -> None:
    service = StateService(MemoryObjects())

    async def run() -> None:
        refused = RefusedLogins(service.audit, at_once, NEVER)
        for number in range(10):
            await refused.note("10.0.0.1", "Basic" if number % 2 else "Bearer", f"Wrong {number}.")
        assert len(noted(service)) == 2
        refused.close(lambda function: function())

    asyncio.run(run())
    *first, last = noted(service)
    assert first == [("10.0.0.1", "Wrong 0."), ("10.0.0.1", "Wrong 1.")]
    assert last == (
        "10.0.0.1",
        "8 more refused logins (4 Basic, 4 Bearer), among them: Wrong 2. Wrong 3. Wrong 4.",
    )


def test_many_addresses_are_bounded_together_and_counted_to_the_last() -> None:
    service = StateService(MemoryObjects())

    async def run() -> None:
        refused = RefusedLogins(service.audit, at_once, NEVER)
        for number in range(1000):
            await refused.note(f"10.0.{number // 250}.{number % 250}", "Basic", "Wrong.")
        refused.close(lambda function: function())

    asyncio.run(run())
    found = noted(service)
    assert len(found) == 6 + 3 + 1
    assert found[-1][0] == "other addresses"
    assert sum(int(detail.split()[0]) for _, detail in found[6:]) == 1000 - 6


def test_counts_are_written_when_the_interval_ends() -> None:
    service = StateService(MemoryObjects())

    async def run() -> None:
        refused = RefusedLogins(service.audit, at_once, SHORT)
        for _ in range(5):
            await refused.note("10.0.0.1", "Basic", "Wrong.")
        while len(noted(service)) < 3:
            await asyncio.sleep(0.005)
        await refused.note("10.0.0.1", "Basic", "Again.")
        refused.close(lambda function: function())

    asyncio.run(run())
    details = [detail for _, detail in noted(service)]
    assert details[2].startswith("3 more refused logins (3 Basic)")
    assert details[3] == "Again."


def test_what_the_store_does_not_take_is_written_later() -> None:
    service = StateService(MemoryObjects())
    is_away = True

    async def call(function: Callable[[], None]) -> None:
        if is_away:
            raise StoreError("The store is away.")
        function()

    async def run() -> None:
        nonlocal is_away
        refused = RefusedLogins(service.audit, call, SHORT)
        for _ in range(7):
            await refused.note("10.0.0.1", "Basic", "Wrong.")
        await asyncio.sleep(0.05)
        is_away = False
        while not noted(service):
            await asyncio.sleep(0.005)
        refused.close(lambda function: function())

    asyncio.run(run())
    assert [detail.split(" (")[0] for _, detail in noted(service)] == ["7 more refused logins"]


def test_a_long_text_of_a_client_is_cut() -> None:
    service = StateService(MemoryObjects())

    async def run() -> None:
        refused = RefusedLogins(service.audit, at_once, NEVER)
        await refused.note("10.0.0.1", "Basic", "x" * 100_000)
        refused.close(lambda function: function())

    asyncio.run(run())
    assert len(noted(service)[0][1]) == 200
