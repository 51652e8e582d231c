"""`vzdump` and `qmrestore`: backups and what is made of them."""

from __future__ import annotations

from stackyard.lab.ssh.programs.cli.model import Command
from stackyard.lab.ssh.programs.cli.running import Tool

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
