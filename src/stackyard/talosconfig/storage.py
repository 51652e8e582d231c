"""The install disk of a node, and the encryption of its partitions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stackyard.talosconfig.settings import make_document

if TYPE_CHECKING:
    from stackyard.talosconfig.settings import MachineInput

__all__ = ["list_install_documents", "list_volume_documents", "make_encryption", "make_install"]

_ENCRYPTION = {"provider": "luks2", "keys": [{"slot": 0, "tpm": {}}]}


def make_install(given: MachineInput) -> dict[str, Any]:
    """Return `machine.install`: the disk by its path or by its serial number."""
    disk = given.node.disk
    chosen = {"disk": disk} if disk.startswith("/") else {"diskSelector": {"serial": disk}}
    return {
        **chosen,
        "image": given.node.image.installer,
        "wipe": False,
        # Kernel arguments are those of the image, from its schematic.
        **({"grubUseUKICmdline": True} if given.contract.has_hidden_features else {}),
    }


def list_install_documents(given: MachineInput) -> list[dict[str, Any]]:
    """Return how Talos installs itself; nothing for a disk image, which is installed already."""
    if given.node.image.is_disk:
        return []
    disk = given.node.disk
    field = "dev_path" if disk.startswith("/") else "serial"
    return [
        make_document(
            "UnattendedInstallConfig",
            installer={"image": given.node.image.installer},
            # A string of CEL is quoted as one of JSON.
            provisioning={"diskSelector": {"match": f"disk.{field} == {json.dumps(disk)}"}, "wipe": False},
        )
    ]


def make_encryption(given: MachineInput) -> dict[str, Any]:
    """Return `machine.systemDiskEncryption` in the classic form; empty if the disk is not encrypted."""
    if not given.node.is_encrypted or given.contract.has_volume_encryption:
        return {}
    return {"state": _ENCRYPTION, "ephemeral": _ENCRYPTION}


def list_volume_documents(given: MachineInput) -> list[dict[str, Any]]:
    """Return the documents of the system partitions."""
    is_encrypted = given.node.is_encrypted and given.contract.has_volume_encryption
    encryption = {"encryption": _ENCRYPTION} if is_encrypted else {}
    mount = {"mount": {"secure": True}} if given.contract.has_kubernetes_documents else {}
    documents = [make_document("VolumeConfig", name="STATE", **encryption)] if is_encrypted else []
    if encryption or mount:
        documents.append(make_document("VolumeConfig", name="EPHEMERAL", **encryption, **mount))
    if given.contract.has_kubernetes_documents:
        documents.append(make_document("FilesystemTrimConfig", interval="168h0m0s"))
    return documents
