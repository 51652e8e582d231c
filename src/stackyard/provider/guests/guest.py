"""One guest on its node: the calls that everything else is made of, each safe to lose its answer."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.clients import proxmox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["CONTAINER", "VM", "Guest", "GuestKind", "find_guest", "locate_guest", "seconds"]

_ATTEMPTS = 3
_BACKOFF = Backoff(0.05, 3.0)
# Long enough for all reads of one plan; every write and every command of the engine makes it older.
_SHARED_S = 5.0
# What a task says that did nothing because a lock was in its way.
_LOCKED = re.compile(r"can't lock file .* - got timeout|(?:VM|CT) is locked \((?!suspended|create|mounted)")


def seconds(state: Object, name: str, default: int = 1800) -> float:
    """Return one of the timeouts of a guest."""
    value = state.get(name)
    return float(value if isinstance(value, int) and value > 0 else default)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestKind:
    """What differs between VMs and containers in the API.

    Attributes:
        path: The part of their paths, which is also their type in lists.
        noun: What a user calls one.
        making: The types of the tasks that make one.
        keeps_token: Whether a finished one carries the token of its entry in the journal.
    """

    path: str
    noun: str
    making: tuple[str, ...]
    keeps_token: bool


VM = GuestKind(path="qemu", noun="VM", making=("qmcreate", "qmclone"), keeps_token=True)
CONTAINER = GuestKind(
    path="lxc", noun="container", making=("vzcreate", "vzclone", "vzrestore"), keeps_token=False
)


async def find_guest(
    work: Work, vm_id: int, kind: GuestKind | None = None, *, max_age_s: float = _SHARED_S
) -> dict[str, Any] | None:
    """Return what the cluster lists of a guest: its node, its pool; None when there is none of the kind."""
    rows = await work.client.get("/cluster/resources", {"type": "vm"}, max_age_s=max_age_s)
    found: dict[str, Any] | None = next(
        (one for one in rows if one.get("vmid") == vm_id and (not kind or one.get("type") == kind.path)), None
    )
    return found


async def locate_guest(work: Work, node: str, vm_id: int, kind: GuestKind) -> Guest | None:
    """Return a guest on the node that has it now; None when it is gone.

    Raises:
        RefusedError: The caller may not see it, so that nobody can say whether it is gone.
    """
    found = await find_guest(work, vm_id, kind)
    if found is not None:
        return Guest(work=work, node=str(found["node"]), vm_id=vm_id, kind=kind)
    # The list leaves out what the caller may not see. Of that, Proxmox refuses to say anything; of anything
    # else, it says that it is not there.
    guest = Guest(work=work, node=node, vm_id=vm_id, kind=kind)
    return None if await guest.find_config() is None else guest


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A VM or a container.

    Attributes:
        work: The operation that it is for.
        node: Where it is.
        vm_id: Its number.
        kind: What it is.
    """

    work: Work
    node: str
    vm_id: int
    kind: GuestKind = VM

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/nodes/{proxmox.quote(self.node)}/{self.kind.path}/{self.vm_id}"

    @property
    def tasks_path(self) -> str:
        """Where the API lists the tasks of its node."""
        return f"/nodes/{proxmox.quote(self.node)}/tasks"

    def on(self, node: str) -> Guest:
        """Return the same guest on another node."""
        return dataclasses.replace(self, node=node)

    async def config(self) -> dict[str, Any]:
        """Return the configuration with what is pending.

        Raises:
            MissingError: There is no such guest on the node.
        """
        found: dict[str, Any] = await self.work.client.get(f"{self.path}/config")
        return found

    async def find_config(self) -> dict[str, Any] | None:
        """Return the configuration with what is pending; None when there is no such guest on the node."""
        try:
            return await self.config()
        except proxmox.RefusedError as err:
            if isinstance(err, proxmox.MissingError) or "does not exist" in err.text:
                return None
            raise

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

    async def is_listed_running(self) -> bool:
        """Tell whether it runs by the list of its node, which serves all reads of one plan.

        What the cluster says of a guest's state is some seconds old.
        """
        path = f"/nodes/{proxmox.quote(self.node)}/{self.kind.path}"
        listed = await self.work.client.get(path, max_age_s=_SHARED_S)
        return any(int(one["vmid"]) == self.vm_id and one.get("status") == "running" for one in listed)

    async def list_pending(self) -> set[str]:
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
        deadline, pauses = time.monotonic() + self.work.client.connection.patience_s, iter(_BACKOFF)
        while True:
            try:
                return await self._run_once(action, params or {}, timeout_s)
            except (proxmox.RefusedError, proxmox.TaskFailedError) as err:
                if done and done in str(err):
                    return ""
                # A call that meets a lock is repeated by the client; its task may meet one as well.
                if not _LOCKED.search(str(err)) or time.monotonic() >= deadline:
                    raise
            await self.work.client.pause(next(pauses))

    async def _run_once(self, action: str, params: dict[str, Any], timeout_s: float) -> str:
        sent = {key: value for key, value in params.items() if value is not None}
        send = self.work.client.put if action == "resize" else self.work.client.post
        upid = await send(f"{self.path}/{action}", sent, repeatable=True)
        if upid:
            await self.wait(str(upid), timeout_s=timeout_s)
        return str(upid or "")

    async def run_unless_done(
        self,
        action: str,
        params: dict[str, Any],
        *,
        is_done: Callable[[], Awaitable[bool]],
        timeout_s: float,
    ) -> None:
        """Start a task that must not be started twice, and wait for it.

        Args:
            action: The end of the path.
            params: Its parameters; None is left out.
            is_done: Tells whether a call whose answer was lost has done it.
            timeout_s: How long it may take.
        """
        sent = {key: value for key, value in params.items() if value is not None}
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                upid = await self.work.client.post(f"{self.path}/{action}", sent)
            except proxmox.AnswerLostError:
                await self.settle(timeout_s)
                if await is_done():
                    return
                if attempt == _ATTEMPTS:
                    raise
            else:
                await proxmox.wait_for(self.work.client, str(upid), timeout_s=timeout_s)
                return

    async def remove(self, params: dict[str, Any] | None = None, *, timeout_s: float) -> None:
        """Remove the guest with its volumes, and wait for that."""
        upid = await self.work.client.delete(self.path, params)
        if upid:
            await proxmox.wait_for(self.work.client, str(upid), timeout_s=timeout_s)

    async def wait(self, upid: str, *, timeout_s: float) -> None:
        """Wait until a task has ended well; what it warns of goes to the user.

        Raises:
            ProxmoxError: It failed, or did not end in time.
        """
        ended = await proxmox.wait_for(self.work.client, upid, timeout_s=timeout_s)
        for warning in ended.warnings:
            self.work.warn(f"The task for {self.kind.noun} {self.vm_id} ended with a warning", warning)

    async def settle(self, timeout_s: float) -> None:
        """Wait until no task is at work on the guest any more, however they end."""
        tasks = await self.work.client.get(self.tasks_path, {"source": "active", "vmid": self.vm_id})
        for task in tasks or ():
            if task.get("upid") and not task.get("endtime"):
                with contextlib.suppress(proxmox.TaskFailedError):
                    await proxmox.wait_for(self.work.client, str(task["upid"]), timeout_s=timeout_s)
        self.work.client.expire_reads()
