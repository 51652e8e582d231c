"""The run of `stackyard cluster machine-config`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from stackyard.base import files
from stackyard.base.errors import UsageError
from stackyard.bootstrap.changes.configuration import WantedConfigs
from stackyard.bootstrap.changes.one_node import read_running_config
from stackyard.cli.runs.clusters.chosen_nodes import choose_nodes
from stackyard.cli.runs.clusters.opened import open_talos_cluster
from stackyard.talosconfig.difference import mask_config

__all__ = ["read_machine_config"]


async def read_machine_config(node_name: str, name: str | None, *, is_running: bool, out: str | None) -> str:
    """Return the configuration of a node, masked; with a file, write it there whole.

    Raises:
        UsageError: There is no such node, or the file is there already.
        TalosError: The node does not answer.
        InvalidInputError: A patch of the user cannot be applied.
    """
    opened = open_talos_cluster(name)
    (node,) = choose_nodes(opened.cluster, (node_name,))
    wanted = WantedConfigs(cluster=opened.cluster, bundle=opened.bundle, keyring=opened.keyring)
    # Also for the running one: the files say which of its values are encrypted.
    config = made = await asyncio.to_thread(wanted.make, node)
    if is_running:
        async with opened.access.open(node) as client:
            config = await read_running_config(client)
    if out is not None:
        path = Path(out)
        if await asyncio.to_thread(path.exists):
            raise UsageError(f"{path} is there already: name another file.")
        if not await asyncio.to_thread(files.make_file, path, config.text.encode()):
            raise UsageError(f"{path} was made meanwhile and has other content: name another file.")
    return made.redactor(mask_config(config).text)
