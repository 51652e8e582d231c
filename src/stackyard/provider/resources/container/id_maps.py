"""The maps of user and group ids, which only the configuration file on the node takes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stackyard.provider.node_shell import open_shell, sudo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["write_id_maps"]

_KINDS = {"uid": "u", "gid": "g"}
_TIMEOUT_S = 60.0


async def write_id_maps(work: Work, state: Object, maps: Sequence[Object]) -> None:
    """Make these the maps of a container; writing them again changes nothing.

    Raises:
        SshError: The node cannot be reached over SSH, or the file cannot be written.
    """
    file = f"/etc/pve/lxc/{int(state['id'])}.conf"
    lines = [
        f"lxc.idmap: {_KINDS[one['type']]} {one['container_id']} {one['host_id']} {one['size']}"
        for one in maps
    ]
    async with open_shell(work, str(state["node_name"])) as shell:
        root = sudo(shell)
        steps = ["set -e", rf"{root}sed -i '/^lxc\.idmap:/d' {file}"]
        if lines:
            text = "\n".join(lines)
            steps.append(f"echo {shlex.quote(text)} | {root}tee -a {file} > /dev/null")
        await shell.run(f"/bin/bash -c {shlex.quote('; '.join(steps))}", timeout_s=_TIMEOUT_S)
    work.client.expire_reads()
