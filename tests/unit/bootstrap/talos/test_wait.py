"""Waiting ends in time, also while a look at what is waited for does not."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.talos_nodes import Reports

from stackyard.bootstrap.talos.wait import BootTimeoutError, wait_for


async def test_a_look_that_does_not_end_is_given_up_with_the_last_reason() -> None:
    answers = ["k8s-1 to boot"]

    async def look() -> str:
        if answers:
            return answers.pop()
        await asyncio.Event().wait()
        return ""

    async with asyncio.timeout(5):
        with pytest.raises(BootTimeoutError, match="Waited 0 s for etcd: k8s-1 to boot"):
            await wait_for(look, what="etcd", timeout_s=0.4, report=Reports())


async def test_a_look_that_runs_out_of_its_own_time_is_not_the_end_of_waiting() -> None:
    async def look() -> str:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await wait_for(look, what="etcd", timeout_s=30, report=Reports())
