"""Settings of a VM as its configuration keeps them, and which parameters of a new one are none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.networks import complete_network
from pvelab.server.params.texts import split_list
from pvelab.world.access.sha256_crypt import hash_password, is_hashed
from pvelab.world.generate import new_uuid

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["NOT_CONFIG", "normalize"]

# Parameters of the call that creates a VM, not options of the VM.
NOT_CONFIG = frozenset(
    (
        *("node", "vmid", "archive", "bwlimit", "force", "pool", "start", "ha-managed", "storage", "unique"),
        *("live-restore", "import-working-storage"),
    )
)


def normalize(world: World, settings: dict[str, Any], *, ostype: str = "") -> dict[str, Any]:
    """Return settings as a configuration keeps them: networks with addresses, tags in order, no passwords."""
    config = dict(settings)
    if "cdrom" in config:
        config["ide2"] = config.pop("cdrom")
    for key, value in settings.items():
        if re.fullmatch(r"net\d+", key):
            config[key] = complete_network(world, str(value))
    if "description" in config:
        config["description"] = str(config["description"]).rstrip()
    if "tags" in config:
        config["tags"] = ";".join(sorted({tag.lower() for tag in split_list(str(config["tags"]))}))
    password = str(config.get("cipassword", ""))
    # The tool that reads it on Windows needs the password itself.
    if password and not ostype.startswith("w") and not is_hashed(password):
        config["cipassword"] = hash_password(password)
    if config.get("vmgenid") == "1":
        config["vmgenid"] = new_uuid()
    return {key: value for key, value in config.items() if value != ""}
