"""Real guests in tests: images with real bytes in a lab's storage."""

from __future__ import annotations

import shutil
from pathlib import Path

import aiohttp
import pytest
from tests.support.lab import LabClient

__all__ = ["IMAGE", "require_qemu_or_skip", "upload_image"]

IMAGE = "local:import/disk.qcow2"


def require_qemu_or_skip() -> None:
    """Skip, by name, where QEMU is not installed."""
    missing = [name for name in ("qemu-system-x86_64", "qemu-img") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


async def upload_image(api: LabClient, path: Path, name: str) -> str:
    """Upload an image to the first node, as a client does; return its volume id."""
    node = api.running.nodes[0]
    form = aiohttp.FormData()
    form.add_field("content", "import")
    with path.open("rb") as stream:
        form.add_field("filename", stream, filename=name, content_type="application/octet-stream")
        reply = await api.raw("POST", f"/nodes/{node}/storage/local/upload", data=form)
    assert reply.status == 200, reply
    assert await api.done(reply.data) == "OK"
    return f"local:import/{name}"
