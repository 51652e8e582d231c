"""A container as a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.fields.container import (
    BASICS,
    CONSOLE,
    CPU,
    DEVICE,
    FEATURES,
    INTERFACE,
    MEMORY,
    MOUNT_POINT,
    ROOT_DISK,
)
from stackyard.fields.guest import ADDRESSES
from stackyard.render.addresses import dns_blocks, ip_config_blocks
from stackyard.render.guest import lifecycle, list_cluster_managed, password_of, startup_blocks
from stackyard.render.terms import Json, blocks, present

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Container, MountPoint
    from stackyard.render.references import References

__all__ = ["container_resource"]


def container_resource(container: Container, references: References) -> dict[str, Json]:
    """Return the arguments of the resource; every value is written out, whatever the defaults are."""
    return {
        **_identity(container, references),
        **_hardware(container),
        **_permissions(container),
        **_render_creation(container, references),
        **present({"depends_on": references.before(container)}),
        **lifecycle(*_list_ignored_changes(container)),
    }


def _list_ignored_changes(container: Container) -> Iterator[str]:
    if container.imported:
        # Proxmox does not remember what a container was created from.
        yield "operating_system"
    yield from list_cluster_managed(container)


def _identity(container: Container, references: References) -> dict[str, Json]:
    return present(
        {
            **BASICS.render(container),
            "node_name": container.node,
            "vm_id": container.vm_id,
            "tags": container.tags,
            "pool_id": references.pool(container.pool),
            "started": container.started and not container.is_template,
            "template": container.is_template,
            "unprivileged": container.unprivileged,
            "hook_script_file_id": references.file(container.hook_script),
            "environment_variables": dict(container.environment) or None,
            "startup": startup_blocks(container.startup),
        }
    )


def _hardware(container: Container) -> dict[str, Json]:
    memory = container.memory
    swap_mib = memory.dedicated_mib if memory.swap_mib is None else memory.swap_mib
    return present(
        {
            "cpu": blocks(CPU.render(container.cpu)),
            "memory": blocks({**MEMORY.render(memory), "swap": swap_mib}),
            "disk": _root_disk(container),
            "mount_point": [_mount(mount) for mount in container.mounts],
            "network_interface": [
                present(
                    {name: value for name, value in INTERFACE.render(nic).items() if name not in ADDRESSES}
                )
                for nic in container.nics
            ],
        }
    )


def _root_disk(container: Container) -> list[dict[str, Json]]:
    root = container.root_disk
    if root is None:
        return []
    options = ROOT_DISK.render(root)
    if not container.imported or root.replicate is not None:
        options["replicate"] = root.replicate is not False
    return blocks({"datastore_id": root.datastore, "size": root.size_gib, **options})


def _mount(mount: MountPoint) -> dict[str, Json]:
    return present(
        {
            **MOUNT_POINT.render(mount),
            "volume": mount.volume,
            "size": None if mount.size_gib is None else f"{mount.size_gib}G",
        }
    )


def _permissions(container: Container) -> dict[str, Json]:
    return present(
        {
            "features": blocks(FEATURES.render(container.features)),
            "device_passthrough": [present(DEVICE.render(device)) for device in container.devices],
            "idmap": [
                present(
                    {
                        "type": id_map.type,
                        "container_id": id_map.container_id,
                        "host_id": id_map.host_id,
                        "size": id_map.size,
                    }
                )
                for id_map in container.id_maps
            ],
            "console": blocks(CONSOLE.render(container.console)),
        }
    )


def _render_creation(container: Container, references: References) -> dict[str, Json]:
    clone, password = container.clone, container.password
    return present(
        {
            "operating_system": blocks(
                {"template_file_id": references.file(container.template), "type": container.os_type}
                if container.template is not None
                else None
            ),
            "clone": blocks(
                {
                    "vm_id": clone.vm_id,
                    "node_name": clone.node,
                    "datastore_id": clone.datastore,
                    "full": clone.full,
                }
                if clone is not None
                else None
            ),
            "initialization": blocks(
                {
                    "hostname": container.name,
                    "dns": dns_blocks(container.dns),
                    # The provider skips an empty block, and gives the address to another card.
                    "ip_config": ip_config_blocks(container.nics, unset="manual"),
                    "user_account": blocks(
                        {
                            "keys": container.ssh_keys,
                            "password": password_of(password),
                        }
                        if container.ssh_keys or password is not None
                        else None
                    ),
                }
            ),
        }
    )
