"""Starting a lab: in this process until it is asked to stop, or in a process of its own in the background."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import process
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.cli.commands.lab.instances import Instance, LabRecord, LabRunningError
from stackyard.cli.commands.lab.relay import parse_error

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LabRequest", "launch", "serve"]

# Far more than it takes: this only ends a start that hangs.
_START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRequest:
    """The lab that the user asks for; None where the user says nothing."""

    nodes: str | None = None
    bind: str | None = None
    port: int | None = None
    ssh_port: int | None = None
    data: str | None = None
    speed: str | None = None
    latency: str | None = None
    seed: str | None = None
    authorized_keys: str | None = None
    allow_downloads: bool = False
    guests: str | None = None
    expose: str | None = None
    guest_network: str | None = None
    factory_port: int | None = None
    truenas_port: int | None = None
    kubernetes: str | None = None

    def list_given_options(self) -> dict[str, Any]:
        """Return what the user says, by the name of the option."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            name.replace("_", "-"): value
            for name, value in fields.items()
            if value is not None and value is not False
        }


async def launch(instance: Instance, wanted: LabRequest) -> tuple[LabRecord, bool]:
    """Start a lab in the background; return it once it is ready, and whether it was running before.

    Raises:
        LabRunningError: One of the same name runs, with other options.
        StackyardError: It does not start; the error is the one that it ended with.
    """
    there = instance.read()
    if there is not None:
        _require_same(there, wanted)
        return there, True
    options = [
        f"--{name}" if value is True else f"--{name}={value}"
        for name, value in wanted.list_given_options().items()
    ]
    command = process.Command(
        # Not from the folder that we happen to be in, which may hold any file called stackyard.py.
        argv=(
            *(sys.executable, "-P", "-m", "stackyard", "--json", "lab", "up", "--foreground"),
            *("--chdir", "/", "--name", instance.name, *options),
        ),
        # It is this same program, for the same user.
        env=dict(os.environ),
        timeout_s=_START_TIMEOUT_S,
    )
    instance.prepare()
    try:
        await process.start_detached(command, log=instance.log, is_ready=_is_ready)
    except process.ProcessFailedError as err:
        import pvelab.runtime.start  # noqa: F401  # lazy: knows the errors that it may have ended with
        import stackyard.base.serving.certificate  # noqa: F401  # lazy: as above

        raise parse_error(err.stdout) or err from err
    return instance.require(), False


async def serve(instance: Instance, wanted: LabRequest, on_ready: Callable[[LabRecord], None]) -> None:
    """Run a lab in this process until the task is cancelled.

    Args:
        instance: The name to run it under.
        wanted: How to run it.
        on_ready: Called once, when clients can connect.

    Raises:
        LabRunningError: One of the same name runs.
        StackyardError: It cannot be started.
    """
    from pvelab import start  # lazy: as above
    from stackyard.cli.commands.lab.options import lab_options  # lazy: most verbs need no server

    instance.claim()
    try:
        async with start(lab_options(wanted, instance.folder / "identity")) as running:
            on_ready(instance.publish(running.document(), wanted.list_given_options()))
            await asyncio.Event().wait()
    finally:
        instance.withdraw()


def _is_ready(line: str) -> bool:
    try:
        return "url" in parse_json(line)
    except JsonError:
        return False


def _require_same(there: LabRecord, wanted: LabRequest) -> None:
    """Refuse to take a running lab for one that the user wants to be different."""
    for name, value in wanted.list_given_options().items():
        has = there.options.get(name)
        if has != value:
            was = "without it" if has is None else f"with {has}"
            raise LabRunningError(
                f"The lab '{there.name}' is already running, but was started {was} where --{name}={value} is "
                "asked for."
            )
