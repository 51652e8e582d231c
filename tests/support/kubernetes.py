"""Kubernetes APIs to test with: the lab's double, and a real kube-apiserver with etcd.

`run_kubernetes("double" | "real", folder)` serves one in a thread of its own, for the length of a block:

    with run_kubernetes("real", tmp_path) as kube:
        async with open_client(kube) as client:
            ...

A real one takes its programs from STACKYARD_TEST_KUBE_APISERVER and STACKYARD_TEST_ETCD, the managed copies
or PATH; without them the test is skipped by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.support.judges import find_judge

from pvelab.kubernetes import RunningKubernetes, serve_double, serve_programs
from pvelab.kubernetes.programs import Programs
from stackyard.clients.kubernetes import KubernetesClient, Patience, WaitTimeoutError, parse_kubeconfig

__all__ = ["KINDS", "always", "find_programs", "open_client", "run_kubernetes", "wait_in_vain"]

KINDS = ("double", "real")


def find_programs() -> Programs:
    """Return the programs of a real API, or skip the test."""
    return Programs(apiserver=find_judge("kube-apiserver"), etcd=find_judge("etcd"))


@contextlib.contextmanager
def run_kubernetes(kind: str, folder: Path) -> Iterator[RunningKubernetes]:
    """Serve an API in a thread until the end of the block."""
    serving = serve_double() if kind == "double" else serve_programs(find_programs(), folder)
    started: queue.Queue[RunningKubernetes | BaseException] = queue.Queue()
    stop: queue.Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(serving, started, stop)))
    thread.start()
    try:
        found = started.get()
        if isinstance(found, BaseException):
            raise found
        yield found
    finally:
        loop, event = stop.get()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)
        thread.join()


async def _serve(
    serving: AbstractAsyncContextManager[RunningKubernetes],
    started: queue.Queue[RunningKubernetes | BaseException],
    stop: queue.Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event]],
) -> None:
    event = asyncio.Event()
    stop.put((asyncio.get_running_loop(), event))
    try:
        async with serving as running:
            started.put(running)
            await event.wait()
    except Exception as err:
        started.put(err)


def open_client(
    kube: RunningKubernetes, user: str = "admin", groups: tuple[str, ...] = ("system:masters",)
) -> KubernetesClient:
    """Return a client of a user, to be opened."""
    access = parse_kubeconfig(kube.make_kubeconfig(user, groups))
    return KubernetesClient(access, Patience(answer_s=20.0, away_s=5.0))


def always(client: KubernetesClient) -> Callable[[], Awaitable[KubernetesClient]]:
    """Return what gives steps an open client."""

    async def give() -> KubernetesClient:
        return client

    return give


async def wait_in_vain(wait: Callable[[float], Awaitable[object]]) -> str:
    """Wait for what does not come; return the reason that is given in the end.

    A busy machine has no answer of the API within so short a time, and within a longer one it has.

    Args:
        wait: Waits for so many seconds.
    """
    for timeout_s in (0.3, 3.0, 30.0):
        with pytest.raises(WaitTimeoutError) as caught:
            await wait(timeout_s)
        if "has not answered" not in str(caught.value):
            break
    return str(caught.value)
