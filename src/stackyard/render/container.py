"""A container as a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.render.addresses import dns_blocks, ip_config_blocks
from stackyard.render.guest import lifecycle, moved_by_cluster, password_of, startup_blocks
from stackyard.render.terms import Json, blocks, present, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Container, MountPoint
    from stackyard.render.references import References

__all__ = ["container_resource"]

# Proxmox and the provider name processors differently for containers.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def container_resource(container: Container, references: References) -> dict[str, Json]:
    """Return the arguments of the resource; every value is written out, whatever the defaults are."""
    return {
        **_identity(container, references),
        **_hardware(container),
        **_permissions(container),
        **_beginning(container, references),
        **present({"depends_on": references.before(container)}),
        **lifecycle(*_left_alone(container)),
    }


def _left_alone(container: Container) -> Iterator[str]:
    if container.imported:
        # Proxmox does not remember what a container was made from.
        yield "operating_system"
    yield from moved_by_cluster(container)


def _identity(container: Container, references: References) -> dict[str, Json]:
    return present(
        {
            "node_name": container.node,
            "vm_id": container.vm_id,
            "description": container.description,
            "tags": container.tags,
            "pool_id": references.pool(container.pool),
            "protection": container.protection,
            "start_on_boot": container.on_boot,
            "started": container.started and not container.is_template,
            "template": container.is_template,
            "unprivileged": container.unprivileged,
            "hook_script_file_id": references.file(container.hook_script),
            "environment_variables": dict(container.environment) or None,
            "startup": startup_blocks(container.startup),
        }
    )


def _hardware(container: Container) -> dict[str, Json]:
    cpu, memory, root = container.cpu, container.memory, container.root_disk
    architecture = cpu.architecture
    return present(
        {
            "cpu": blocks(
                {
                    "cores": cpu.cores,
                    "architecture": architecture and _ARCHITECTURES.get(architecture, architecture),
                    "limit": whole(cpu.limit),
                    "units": cpu.units,
                }
            ),
            "memory": blocks(
                {
                    "dedicated": memory.dedicated_mib,
                    "swap": memory.dedicated_mib if memory.swap_mib is None else memory.swap_mib,
                }
            ),
            "disk": blocks(
                {
                    "datastore_id": root.datastore,
                    "size": root.size_gib,
                    "acl": root.acl,
                    "quota": root.quota,
                    "replicate": root.replicate is not False
                    if not container.imported or root.replicate is not None
                    else None,
                    "mount_options": root.mount_options,
                }
                if root is not None
                else None
            ),
            "mount_point": [_mount(mount) for mount in container.mounts],
            "network_interface": [
                present(
                    {
                        "name": nic.name,
                        "bridge": nic.bridge,
                        "mac_address": nic.mac,
                        "vlan_id": nic.vlan,
                        "mtu": nic.mtu,
                        "rate_limit": whole(nic.rate_limit_mb),
                        "firewall": nic.firewall,
                    }
                )
                for nic in container.nics
            ],
        }
    )


def _mount(mount: MountPoint) -> dict[str, Json]:
    return present(
        {
            "path": mount.path,
            "volume": mount.volume,
            "size": None if mount.size_gib is None else f"{mount.size_gib}G",
            "backup": mount.backup,
            "read_only": mount.read_only,
            "shared": mount.shared,
            "acl": mount.acl,
            "quota": mount.quota,
            "replicate": mount.replicate,
            "mount_options": mount.mount_options,
        }
    )


def _permissions(container: Container) -> dict[str, Json]:
    features, console = container.features, container.console
    return present(
        {
            "features": blocks(
                {
                    "nesting": features.nesting,
                    "keyctl": features.keyctl,
                    "fuse": features.fuse,
                    "mknod": features.mknod,
                    "mount": features.mount,
                }
            ),
            "device_passthrough": [
                present(
                    {
                        "path": device.path,
                        "mode": device.mode,
                        "uid": device.uid,
                        "gid": device.gid,
                        "deny_write": device.deny_write,
                    }
                )
                for device in container.devices
            ],
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
            "console": blocks(
                {"enabled": console.enabled, "tty_count": console.tty_count, "type": console.type}
            ),
        }
    )


def _beginning(container: Container, references: References) -> dict[str, Json]:
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
