"""One VM on its node: the calls that everything else is made of, each safe to lose its answer."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard import proxmox

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["Guest", "seconds"]

_ATTEMPTS = 3
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 3.0
# What a task says that did nothing because a lock was in its way.
_LOCKED = re.compile(r"can't lock file .* - got timeout|VM is locked \((?!suspended|create|mounted)")


def seconds(state: Object, name: str, default: int = 1800) -> float:
    """Return one of the timeouts of a VM."""
    value = state.get(name)
    return float(value if isinstance(value, int) and value > 0 else default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A VM.

    Attributes:
        work: The operation that it is for.
        node: Where it is.
        vm_id: Its number.
    """

    work: Work
    node: str
    vm_id: int

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/nodes/{proxmox.quoted(self.node)}/qemu/{self.vm_id}"

    def on(self, node: str) -> Guest:
        """Return the same VM on another node."""
        return dataclasses.replace(self, node=node)

    async def config(self) -> dict[str, Any]:
        """Return the configuration with what is pending.

        Raises:
            MissingError: There is no such VM on the node.
        """
        found: dict[str, Any] = await self.work.client.get(f"{self.path}/config")
        return found

    async def current(self) -> dict[str, Any]:
        """Return the configuration in force, without what is pending."""
        found: dict[str, Any] = await self.work.client.get(f"{self.path}/config", {"current": True})
        return found

    async def status(self) -> dict[str, Any]:
        """Return whether it runs, and more."""
        found: dict[str, Any] = await self.work.client.get(f"{self.path}/status/current")
        return found

    async def is_running(self) -> bool:
        """Tell whether it runs."""
        return (await self.status()).get("status") == "running"

    async def pending(self) -> set[str]:
        """Return the keys whose change waits for a restart."""
        listed = await self.work.client.get(f"{self.path}/pending")
        return {str(one["key"]) for one in listed if "pending" in one or "delete" in one}

    async def set(
        self,
        params: dict[str, Any],
        *,
        delete: Iterable[str] = (),
        allocates: Collection[str] = (),
        timeout_s: float = 1800,
    ) -> None:
        """Change the configuration.

        Args:
            params: What to set; None is left out.
            delete: What to unset.
            allocates: The keys among them that make a new volume, which must not be done twice.
            timeout_s: How long the change may take.
        """
        sent = {key: value for key, value in params.items() if value is not None}
        unset = sorted(set(delete) - sent.keys())
        if unset:
            sent["delete"] = ",".join(unset)
        if not sent:
            return
        if not allocates:
            await self.work.client.put(f"{self.path}/config", sent)
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                # As a task, because a new volume may take longer than a call is waited for.
                upid = await self.work.client.post(f"{self.path}/config", sent)
            except proxmox.AnswerLostError:
                await self.settle(timeout_s)
                done = (await self.config()).keys() & set(allocates)
                if done >= set(allocates) or attempt == _ATTEMPTS:
                    if done >= set(allocates):
                        return
                    raise
                sent = {key: value for key, value in sent.items() if key not in done}
            else:
                if upid:
                    await proxmox.wait_for(self.work.client, str(upid), timeout_s=timeout_s)
                return

    async def run(
        self, action: str, params: dict[str, Any] | None = None, *, timeout_s: float, done: str = ""
    ) -> str:
        """Start a task that may be started again without harm, and wait for it.

        Args:
            action: The end of the path.
            params: Its parameters.
            timeout_s: How long it may take.
            done: What Proxmox says when there is nothing to do.

        Returns:
            The id of the task; empty when there was nothing to do.
        """
        deadline, pause_s = time.monotonic() + self.work.client.connection.patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return await self._run_once(action, params or {}, timeout_s)
            except (proxmox.RefusedError, proxmox.TaskFailedError) as err:
                if done and done in str(err):
                    return ""
                # A call that meets a lock is repeated by the client; its task may meet one as well.
                if not _LOCKED.search(str(err)) or time.monotonic() >= deadline:
                    raise
            await self.work.client.pause(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _run_once(self, action: str, params: dict[str, Any], timeout_s: float) -> str:
        sent = {key: value for key, value in params.items() if value is not None}
        send = self.work.client.put if action == "resize" else self.work.client.post
        upid = await send(f"{self.path}/{action}", sent, repeatable=True)
        if upid:
            ended = await proxmox.wait_for(self.work.client, str(upid), timeout_s=timeout_s)
            for warning in ended.warnings:
                self.work.warn(f"The task for VM {self.vm_id} ended with a warning", warning)
        return str(upid or "")

    async def settle(self, timeout_s: float, *, vm_id: int | None = None) -> None:
        """Wait until no task is at work on the VM any more, however they end."""
        tasks = await self.work.client.get(
            f"/nodes/{proxmox.quoted(self.node)}/tasks", {"source": "active", "vmid": vm_id or self.vm_id}
        )
        for task in tasks or ():
            if task.get("upid") and not task.get("endtime"):
                with contextlib.suppress(proxmox.TaskFailedError):
                    await proxmox.wait_for(self.work.client, str(task["upid"]), timeout_s=timeout_s)
        self.work.client.outdate_reads()
