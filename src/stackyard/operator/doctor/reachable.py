"""What the site needs from elsewhere: its store, and the API of each of its hosts."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import threading
from typing import TYPE_CHECKING, TypeVar

from stackyard.base.errors import FileError, StackyardError
from stackyard.clients import proxmox
from stackyard.operator.doctor.model import DoctorRow, RowStatus
from stackyard.operator.preflight.api import OLDEST_MAJOR, refusal
from stackyard.operator.preflight.subject import subject_of
from stackyard.sources.store import earlier_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.store import ChosenStore

__all__ = ["describe_problem", "look_at_host", "look_at_store"]

T = TypeVar("T")


async def look_at_store(store: ChosenStore, timeout_s: float) -> DoctorRow:
    """Return whether the store of the site can be read; nothing is written to it."""
    try:
        async with asyncio.timeout(timeout_s):
            is_empty = await _in_a_thread(lambda: _read(store))
    except StackyardError as err:
        return describe_problem("store", "store", err, f"{store.label}: ")
    except TimeoutError:
        return _no_answer("store", "store", timeout_s, f"{store.label}: ")
    seen = f"{store.label} ({store.chosen_by})"
    if earlier_files.are_there(store.base):
        return DoctorRow(
            area="store",
            name="store",
            seen=f"{seen}; {store.base} has files of an earlier version",
            status=RowStatus.WARNING,
            remedy="Nothing to do: the next command that writes takes them into the store.",
        )
    return DoctorRow(area="store", name="store", seen=f"{seen}, {'empty' if is_empty else 'can be read'}")


def _read(store: ChosenStore) -> bool:
    # The first holds what runs leave on this machine, whichever store the site uses.
    for folder in (store.base,) if store.is_shared else (store.base, store.folder):
        if os.path.lexists(folder) and not folder.is_dir():
            raise FileError(
                f"{folder} is not a folder.", remedy="Move it away; stackyard creates the folder."
            )
    with contextlib.closing(store.read_as_is()) as objects:
        return not objects.list("", limit=1)


async def look_at_host(resolver: ConfigResolver, name: str, timeout_s: float) -> DoctorRow:
    """Return whether the API of a host answers, with which version, and whether it takes our token."""
    try:
        async with asyncio.timeout(timeout_s):
            # It may ask the store, which blocks.
            subject = await _in_a_thread(lambda: subject_of(resolver, name))
            if subject.host.is_host_only:
                return DoctorRow(area="hosts", name=name, seen="a machine without the Proxmox API; not asked")
            if subject.resolved is None:
                return DoctorRow(
                    area="hosts",
                    name=name,
                    seen=f"there is no API token for {subject.host.api_endpoint}",
                    status=RowStatus.PROBLEM,
                    remedy=f"Run: stackyard connect {subject.host.api_endpoint}",
                )
            return await _ask(name, subject.resolved.connection, timeout_s)
    except StackyardError as err:
        return describe_problem("hosts", name, err)
    except TimeoutError:
        return _no_answer("hosts", name, timeout_s)


async def _ask(name: str, connection: proxmox.Connection, timeout_s: float) -> DoctorRow:
    quick = dataclasses.replace(connection, timeout_s=timeout_s, patience_s=0.0)
    async with proxmox.Client(quick) as client:
        try:
            answer = await client.get("/version")
        except StackyardError as err:
            found = refusal(err)
            return DoctorRow(
                area="hosts",
                name=name,
                seen=found.detail,
                status=RowStatus.PROBLEM,
                remedy=found.kind.remedy,
                code=found.kind.code,
            )
    version = str((answer or {}).get("version", ""))
    seen = f"Proxmox VE {version or 'of unknown version'} at {connection.endpoint}, the token works"
    major = version.partition(".")[0]
    if major.isdecimal() and int(major) < OLDEST_MAJOR:
        remedy = f"Upgrade it to Proxmox VE {OLDEST_MAJOR} or later; stackyard is tested with those."
        return DoctorRow(area="hosts", name=name, seen=seen, status=RowStatus.WARNING, remedy=remedy)
    return DoctorRow(area="hosts", name=name, seen=seen)


def describe_problem(area: str, name: str, err: StackyardError, which: str = "") -> DoctorRow:
    """Return the row of an error."""
    findings = "; ".join(finding.detail for finding in err.diagnostics)
    seen = f"{which}{err.detail} {findings}".strip()
    return DoctorRow(
        area=area, name=name, seen=seen, status=RowStatus.PROBLEM, remedy=err.remedy, code=err.code
    )


def _no_answer(area: str, name: str, timeout_s: float, which: str = "") -> DoctorRow:
    return DoctorRow(
        area=area,
        name=name,
        seen=f"{which}no answer within {timeout_s:g} s",
        status=RowStatus.PROBLEM,
        remedy="Check the network, or wait longer with --timeout.",
    )


async def _in_a_thread(action: Callable[[], T]) -> T:
    """Run what blocks; where it takes too long, nobody waits for its end, not even Python at its own."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def give(result: T | None, err: BaseException | None) -> None:
        if not done.done():
            if err is not None:
                done.set_exception(err)
            else:
                done.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, failed = None, None
        try:
            result = action()
        # Raised again where it is waited for.
        except BaseException as err:
            failed = err
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(give, result, failed)

    threading.Thread(target=work, daemon=True).start()
    return await done
