"""The user's own templates, rendered in a process whose time and memory are bounded.

A template comes with a pull request. The sandbox keeps it from everything but its values, and a loop in it
could still run for ever, or fill the memory of the machine that checks it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import Location
from stackyard.base.process.worker import WorkCrashedError, Worker, WorkTimeoutError
from stackyard.render.cluster import render_template
from stackyard.render.cluster.sandbox import TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.render.cluster import RenderTemplate, TemplateFile

__all__ = ["bounded_templates"]

# A template of a hundred nodes takes milliseconds; the start of the process counts, on a busy machine.
_TIMEOUT_S = 10.0
_MEMORY_BYTES = 512 * 2**20


@contextlib.contextmanager
def bounded_templates(
    *, timeout_s: float = _TIMEOUT_S, memory_bytes: int = _MEMORY_BYTES
) -> Iterator[RenderTemplate]:
    """Give what renders a template of the user; its process starts with the first.

    It must not be used in a thread that runs an event loop.

    Args:
        timeout_s: How long one template may take.
        memory_bytes: How much memory the process may use.
    """
    with contextlib.ExitStack() as stack:
        started: list[tuple[asyncio.Runner, Worker]] = []

        def render(templates: Mapping[str, TemplateFile], name: str, values: Mapping[str, Any], /) -> str:
            if not started:
                started.append(stack.enter_context(_worker(memory_bytes)))
            runner, worker = started[0]
            call = worker.call(render_template, dict(templates), name, dict(values), timeout_s=timeout_s)
            where = Location(templates[name].path)
            try:
                return runner.run(call)
            except WorkTimeoutError as err:
                raise TemplateError(f"It took longer than {timeout_s:g} s.", where=where) from err
            except WorkCrashedError as err:
                detail = f"It needs more than {memory_bytes // 2**20} MiB of memory, or crashed."
                raise TemplateError(detail, where=where) from err

        yield render


@contextlib.contextmanager
def _worker(memory_bytes: int) -> Iterator[tuple[asyncio.Runner, Worker]]:
    worker = Worker(memory_bytes=memory_bytes)
    with asyncio.Runner() as runner:
        try:
            yield runner, worker
        finally:
            runner.run(worker.close())
