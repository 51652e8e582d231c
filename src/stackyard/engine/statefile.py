"""The engine's verbs on the state: list, move, remove, replace-provider, pull, push, import, force-unlock.

OpenTofu speaks JSON in these only since 1.12 and Terraform does not, so they are run in the one form
that every version has: the exit status tells success, and what is read is either JSON (`state pull`) or one
address a line (`state list`, unchanged since Terraform 0.12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import directories, files
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import UsageError
from stackyard.engine import invoke
from stackyard.engine.version import EngineBrokenError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.engine.workdir import Workdir

__all__ = [
    "StateSnapshot",
    "force_unlock",
    "import_resource",
    "read_snapshot",
    "replace_provider",
    "save_snapshot",
    "state_list",
    "state_mv",
    "state_pull",
    "state_push",
    "state_rm",
    "untaint",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """A version of a state, secrets in clear; its representation shows none.

    Attributes:
        data: The file as it is.
        lineage: Which state it is a version of.
        serial: Which version.
        encrypted: Whether the engine encrypted it, so that nothing else can be read.
        document: The same as JSON.
    """

    data: bytes
    lineage: str
    serial: int
    encrypted: bool
    document: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"StateSnapshot(lineage={self.lineage!r}, serial={self.serial})"

    @property
    def resources(self) -> int:
        """How many resources it holds; an encrypted one does not tell."""
        found = self.document.get("resources")
        return len(found) if isinstance(found, list) else 0

    def holds_the_same(self, other: StateSnapshot) -> bool:
        """Return whether both describe the same resources and outputs."""
        keys = ("lineage", "serial", "resources", "outputs", "encrypted_data")
        return all(self.document.get(key) == other.document.get(key) for key in keys)


def read_snapshot(data: bytes) -> StateSnapshot:
    """Read a state file.

    Raises:
        ValueError: It is not one.
    """
    document = parse_json(data, LARGE)
    if not isinstance(document, dict):
        raise ValueError("a state is a JSON object")
    lineage, serial = document.get("lineage"), document.get("serial")
    if not isinstance(lineage, str) or not isinstance(serial, int):
        raise ValueError("a state has a lineage and a serial")
    encrypted = "encrypted_data" in document
    return StateSnapshot(data=data, lineage=lineage, serial=serial, encrypted=encrypted, document=document)


def save_snapshot(snapshot: StateSnapshot, path: Path) -> None:
    """Write a state to a file that only its owner can read, in a folder of the same kind.

    Raises:
        FileError: It cannot be written.
    """
    directories.ensure_private(path.parent)
    files.replace_file(path, snapshot.data)


async def state_list(workdir: Workdir) -> tuple[str, ...]:
    """Return the address of every resource instance in the state, in the engine's order.

    Raises:
        TofuError: The state cannot be read.
    """
    return tuple((await invoke.read_lines(workdir, "state list")).split("\n")[:-1])


async def state_mv(workdir: Workdir, source: str, destination: str, *, file: Path | None = None) -> None:
    """Give what is at one address another one.

    Args:
        workdir: Where the engine works.
        source: The address.
        destination: The new address.
        file: A state file to work on; that of the backend when absent.

    Raises:
        TofuError: There is nothing at the source, or something at the destination already.
    """
    args = (invoke.lock_wait(workdir), *_in_file(file), "--", source, destination)
    await invoke.run_silent(workdir, "state mv", args)


async def replace_provider(workdir: Workdir, source: str, destination: str, *, file: Path | None) -> None:
    """Let another provider manage everything that one manages.

    Args:
        workdir: Where the engine works.
        source: The provider, such as `registry.terraform.io/telmate/proxmox`.
        destination: The other provider.
        file: A state file to work on; that of the backend when absent.

    Raises:
        TofuError: The state has nothing of the first, or one of them is no provider.
    """
    args = ("-auto-approve", invoke.lock_wait(workdir), *_in_file(file), "--", source, destination)
    await invoke.run_silent(workdir, "state replace-provider", args)


def _in_file(file: Path | None) -> tuple[str, ...]:
    return () if file is None else (f"-state={file}",)


async def state_rm(workdir: Workdir, addresses: tuple[str, ...], *, file: Path | None = None) -> None:
    """Forget resources without destroying them.

    Args:
        workdir: Where the engine works.
        addresses: What to forget.
        file: A state file to work on; that of the backend when absent.

    Raises:
        TofuError: Nothing in the state matches an address.
    """
    if not addresses:
        raise UsageError("There is no address to remove from the state.")
    args = (invoke.lock_wait(workdir), *_in_file(file), "--", *addresses)
    await invoke.run_silent(workdir, "state rm", args)


async def state_pull(workdir: Workdir) -> StateSnapshot | None:
    """Return the current state, or None where there is none yet.

    Raises:
        TofuError: The state cannot be read.
    """
    text = await invoke.read_lines(workdir, "state pull")
    if not text.strip():
        return None
    try:
        snapshot = read_snapshot(text.encode())
    except ValueError as err:
        # The text is not quoted: whatever it is, it may be part of a state.
        raise EngineBrokenError(
            f"{invoke.name(workdir, 'state pull')} printed something that is no state."
        ) from err
    # A remote backend without a state gives one that was never written: no lineage, serial 0.
    return snapshot if snapshot.lineage else None


async def state_push(workdir: Workdir, data: bytes) -> None:
    """Store a state, unless it has another lineage, an older serial, or this serial with other content.

    Raises:
        TofuError: It was refused or cannot be stored.
    """
    await invoke.run_silent(workdir, "state push", (invoke.lock_wait(workdir), "-"), stdin=data)


async def import_resource(
    workdir: Workdir, address: str, resource_id: str, *, file: Path | None = None
) -> None:
    """Take a resource that exists into the state; the configuration must have a block for it.

    Args:
        workdir: Where the engine works.
        address: The address of the block.
        resource_id: What the provider finds the resource by.
        file: A state file to work on; that of the backend when absent.

    Raises:
        TofuError: There is no such block or resource, or the address is taken.
    """
    args = ("-input=false", invoke.lock_wait(workdir), *_in_file(file), "--", address, resource_id)
    await invoke.run_silent(workdir, "import", args)


async def untaint(workdir: Workdir, address: str) -> None:
    """Take a resource for complete whose making failed, so that the next plan does not replace it.

    Raises:
        TofuError: There is no such resource in the state, or it was complete.
    """
    await invoke.run_silent(workdir, "untaint", (invoke.lock_wait(workdir), "--", address))


async def force_unlock(workdir: Workdir, lock_id: str) -> None:
    """Remove a lock that a dead run left behind.

    Raises:
        TofuError: There is no such lock, or the backend does not let go of it.
    """
    await invoke.run_silent(workdir, "force-unlock", ("-force", "--", lock_id))
