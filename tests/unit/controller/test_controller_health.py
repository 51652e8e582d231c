"""The health of a controller that keeps states: whether it could keep one now."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from tests.support.controller import asking, make_site, running


async def test_a_controller_whose_states_cannot_be_written_says_so_until_they_can(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    async with running(site, state=tmp_path / "states") as found, asking(found) as client:
        roomy = resource.getrlimit(resource.RLIMIT_FSIZE)
        # No file may grow: the system itself refuses it, as with a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, roomy[1]))
        try:
            ill, specs = await client("/health"), await client("/specs")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, roomy)
        assert (ill.status, ill.document["status"], specs.status) == (503, "failed", 200)
        assert ill.document["reason"].startswith("States: ")
        assert str(tmp_path) not in ill.body.decode()
        while (await client("/health")).status != 200:
            await asyncio.sleep(0.05)
