"""Starting a sandbox closes its own descriptors, each once, whatever others open meanwhile."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pvelab.machines.bubblewrap import find_bubblewrap


async def test_a_sandbox_that_starts_closes_no_descriptor_of_others(tmp_path: Path) -> None:
    found = await find_bubblewrap()
    if isinstance(found, str):
        pytest.skip(found)
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    opened: list[int] = []
    copying = asyncio.create_task(found.copy(tmp_path / "source", tmp_path / "target"))
    try:
        while not copying.done():
            if len(opened) < 200:
                opened.append(os.open(os.devnull, os.O_RDONLY))
            await asyncio.sleep(0.001)
        await copying
        assert opened
        for number in opened:
            os.fstat(number)
    finally:
        for number in opened:
            os.close(number)
