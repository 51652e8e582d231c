"""The inventories of stacks: a file for each in one folder, which Ansible reads and merges."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.inventory.contract import IncompleteError
from stackyard.inventory.stack_hosts import read_stack_hosts
from stackyard.sources.stacks.kinds import KIND
from stackyard.state.inside import EncryptedStateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.inventory.stack_hosts import StackHosts
    from stackyard.path.target import Target

__all__ = ["is_published", "publish_stack", "stack_inventory_file", "write_hosts"]

FOLDER = "inventory.d"


def stack_inventory_file(base: Path, target: Target) -> Path:
    """Return the file of a stack; no two targets have one name."""
    kind, _, rest = target.state_name.partition("/")
    # Stacks came first: their files have no kind in their names.
    name = (rest if kind == KIND else target.state_name).replace("/", "--")
    return base / FOLDER / f"{name}.yml"


def is_published(base: Path, target: Target, state: bytes | None) -> bool:
    """Return whether the inventory of a stack is written as its state has it now."""
    path = stack_inventory_file(base, target)
    try:
        hosts = read_stack_hosts(str(target), state)
    except EncryptedStateError:
        # Only the engine can look into it.
        return True
    except IncompleteError:
        return False
    if hosts.is_empty:
        return not path.exists()
    return path.exists() and path.read_bytes() == hosts.as_yaml().encode()


def publish_stack(
    base: Path, target: Target, state: bytes | None, seen: Mapping[str, Sequence[str]] | None = None
) -> Path | None:
    """Write the inventory of a stack as its state has it; return the file, None where there are no hosts.

    Args:
        base: The folder of what stays on this machine.
        target: The stack.
        state: Its state.
        seen: Addresses that guests reported since, by the addresses of their resources.

    Raises:
        IncompleteError: Something is missing; the inventory before stays.
        EncryptedStateError: The engine encrypted the state.
        FileError: It cannot be written; the inventory before stays.
    """
    return write_hosts(stack_inventory_file(base, target), read_stack_hosts(str(target), state, seen))


def write_hosts(path: Path, hosts: StackHosts) -> Path | None:
    """Write an inventory, or remove the one before where there are no hosts any more."""
    if hosts.is_empty:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return None
    directories.ensure_private(path.parent)
    content = hosts.as_yaml().encode()
    if not path.exists() or path.read_bytes() != content:
        files.replace_file(path, content)
    return path
