"""Serves a provider: `python -m bench.serve_provider REPORT COMMAND ...` runs an engine with ours.

Without a command it serves one that answers at once, prints how an engine finds it, and ends with its input.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from stackyard import provider
from stackyard.path import run as _what_a_run_has_loaded  # noqa: F401


async def run(command: list[str]) -> tuple[int, float]:
    """Serve the built-in provider until a command has ended; return its status and how long that took."""
    began_s = time.perf_counter()
    # As a run of the program does: the provider loads while the engine starts.
    async with provider.serve(provider.Options(environment=os.environ)) as served:
        served.begin()
        env = {**os.environ, "TF_REATTACH_PROVIDERS": served.reattach}
        engine = await asyncio.create_subprocess_exec(*command, env=env)
        status = await engine.wait()
    return status, time.perf_counter() - began_s


async def answer_at_once() -> None:
    """Serve until nobody listens any more."""
    from bench import at_once  # lazy: the built-in provider must not find its parts loaded

    at_once.install()
    async with provider.serve() as served:
        served.begin()
        sys.stdout.write(served.reattach + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


def main(given: list[str]) -> int:
    """Do what is asked; return the status."""
    if not given:
        asyncio.run(answer_at_once())
        return 0
    status, took_s = asyncio.run(run(given[1:]))
    Path(given[0]).write_text(str(took_s))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
