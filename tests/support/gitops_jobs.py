"""Commands of `stackyard gitops`, started as a job of a forge's CI starts them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import orjson
from tests.support.cli import PROGRAM
from tests.support.gitops_rig import GitopsRig

__all__ = ["run_job", "start_job"]


def start_job(yard: GitopsRig, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command as a job of the forge's CI does."""
    env = {
        **os.environ,
        "STACKYARD_FORGE_TOKEN": yard.rig.token,
        "STACKYARD_FORGE": "gitea",
        "STACKYARD_FORGE_URL": yard.rig.url,
        "STACKYARD_FORGE_REPOSITORY": yard.rig.repository,
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    place = folder / "control"
    place.mkdir(exist_ok=True)
    (place / "stackyard.yaml").touch()
    return subprocess.Popen(
        [*PROGRAM, "gitops", *words, "--json"], cwd=place, env=env, stdout=subprocess.PIPE
    )


async def run_job(yard: GitopsRig, folder: Path, *words: str, status: int = 0) -> dict[str, Any]:
    """Run a command to its end, and return what it printed."""
    started = await asyncio.to_thread(start_job, yard, folder, *words)
    said, _ = await asyncio.to_thread(started.communicate)
    assert started.returncode == status, said
    document: dict[str, Any] = orjson.loads(said)
    return document
