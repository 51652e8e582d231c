"""`vzdump` and `qmrestore`: backups and what is made of them."""

from __future__ import annotations

from pvelab.ssh.programs.cli.model import Command
from pvelab.ssh.programs.cli.run import Tool

__all__ = ["QMRESTORE", "VZDUMP"]

VZDUMP = Tool("vzdump", Command(route="POST /nodes/{node}/vzdump", listed="vmid", follows_task=True))

QMRESTORE = Tool(
    "qmrestore",
    Command(
        route="POST /nodes/{node}/qemu",
        arguments=("archive", "vmid"),
        parameters={"archive": {"type": "string"}},
        follows_task=True,
    ),
)
