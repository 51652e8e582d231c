"""From the object to the `Desired` model: the key of a guest here is its key there and in the state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.base.diagnostics import Kind
from stackyard.desired import (
    Affinity,
    Agent,
    Cdrom,
    Clone,
    CloudInit,
    Container,
    ContainerMemory,
    ContainerNic,
    Cpu,
    DeclaredFile,
    Desired,
    Device,
    Disk,
    Display,
    Dns,
    Download,
    EfiDisk,
    Features,
    HighAvailability,
    Inline,
    Memory,
    MountPoint,
    Nic,
    Pool,
    RootDisk,
    Secret,
    Startup,
    Tpm,
    User,
    Verify,
    Vm,
)
from stackyard.sources.deployment.model import affinity_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.desired import File
    from stackyard.sources.deployment.model import Guest, ParsedDeployment
    from stackyard.sources.deployment.text import ObjectText

__all__ = ["ModelBuilder", "build", "password_name"]

VALUE = Kind(
    code="E-DEPLOYMENT-VALUE",
    summary="A guest has a value that Proxmox cannot take",
    remedy="Correct the value; nothing was planned and nothing was written.",
)
_UP_DELAY_S = 10
_NOT_IN_KEY = re.compile(r"[^A-Za-z0-9_.-]+")
_AS_WRITTEN = ("firewall", "replication")
_HOTPLUG = "network,disk,usb,memory"


class ModelBuilder:
    """Builds the model of one object.

    Args:
        understood: The object.
        document: Its text, for the places of findings.
        found: Takes what cannot be built.
        read_data: Returns the text of a file of cloud-init that a guest names.
    """

    def __init__(
        self,
        understood: ParsedDeployment,
        document: ObjectText,
        found: Diagnostics,
        *,
        read_data: Callable[[str], str],
    ) -> None:
        self._understood = understood
        self._document = document
        self._found = found
        self._read_data = read_data
        self._downloads: dict[str, Download] = {}

    def build(self) -> Desired:
        """Return the model; a guest that cannot be built is reported and left out."""
        vms: list[Vm] = []
        containers: list[Container] = []
        for guest in self._understood.guests:
            try:
                if guest.is_container:
                    containers.append(self._container(guest))
                else:
                    vms.append(self._vm(guest))
            except ValidationError as err:
                self._report(guest, err)
        scope = self._understood.scope
        return Desired(
            vms=tuple(vms),
            containers=tuple(containers),
            files=tuple(self._downloads.values()),
            pools=tuple(
                Pool(name=name, comment=(pool or {}).get("comment"))
                for name, pool in scope.get_map("pools").items()
            ),
            affinities=self._affinities({guest.key for guest in (*vms, *containers)}),
        )

    def _affinities(self, built: set[str]) -> tuple[Affinity, ...]:
        affinities: list[Affinity] = []
        for name, members in affinity_groups(self._understood.guests).items():
            keys = tuple(guest.key for guest in members if guest.key in built)
            if len(keys) > 1:
                try:
                    affinities.append(Affinity(name=name, guests=keys))
                except ValidationError:
                    first = members[0]
                    text = f"{first.key}: the group `{name}` must be a letter, then letters, digits, - or _."
                    self._found.add(VALUE, text, self._document.place((*first.path, "ha_affinity_group")))
        return tuple(affinities)

    def _report(self, guest: Guest, err: ValidationError) -> None:
        for one in err.errors(include_url=False, include_context=False):
            place = ".".join(map(str, one["loc"]))
            text = f"{guest.key}: {one['msg']}{f' ({place})' if place else ''}."
            # What the object says as the model does has a place of its own there.
            inside = one["loc"] if one["loc"] and one["loc"][0] in _AS_WRITTEN else ()
            path = guest.path if guest.is_generated else (*guest.path, *self._written(guest, inside))
            self._found.add(VALUE, text, self._document.place(path))

    def _written(self, guest: Guest, path: Sequence[str | int]) -> Iterator[str | int]:
        """Return what the object has of a path; a single entry of a list may stand there alone."""
        value: Any = guest.entry
        for key in path:
            is_item = isinstance(value, list) and isinstance(key, int) and key < len(value)
            if is_item or (isinstance(value, dict) and key in value):
                yield key
                value = value[key]

    def _container(self, guest: Guest) -> Container:
        fields = guest.fields
        return Container(
            **_base(guest),
            on_boot=fields["start_on_boot"],
            template=self._template(fields["ct_template"], guest.node),
            os_type=fields["os_type"],
            unprivileged=fields["unprivileged"],
            cpu=Cpu(cores=fields["cpu_cores"]),
            memory=ContainerMemory(dedicated_mib=fields["memory_dedicated"], swap_mib=fields["memory_swap"]),
            root_disk=RootDisk(
                datastore=fields["root_disk"]["datastore_id"], size_gib=fields["root_disk"]["size"]
            ),
            mounts=tuple(_mount(mount, guest) for mount in fields["mount_points"]),
            nics=tuple(
                ContainerNic(name=card["name"], **_card(guest, place, card))
                for place, card in enumerate(fields["network_interfaces"])
            ),
            features=Features(
                **{**fields["features"], "mount": tuple(fields["features"].get("mount") or ())}
            ),
            devices=tuple(_device(device) for device in fields["device_passthrough"]),
            ssh_keys=tuple(fields["ssh_keys"]),
            password=_password(guest),
        )

    def _template(self, text: str, node: str) -> File:
        """Return a template: a volume, the name of a file on the datastore of files, or a URL to fetch it."""
        if not text.startswith(("http://", "https://")):
            if ":" in text:
                return text
            return f"{self._understood.scope.word('datastore_iso', 'local')}:vztmpl/{text}"
        name = text.rpartition("/")[2]
        key = _NOT_IN_KEY.sub("-", f"template-{name}-{node}")[:120]
        if key not in self._downloads:
            self._downloads[key] = Download(
                kind="download",
                key=key,
                node=node,
                datastore=self._understood.scope.word("datastore_iso", "local"),
                content="vztmpl",
                url=text,
            )
        return DeclaredFile(file=key)

    def _vm(self, guest: Guest) -> Vm:
        fields = guest.fields
        clone = fields.get("clone_template")
        efi, tpm, cdrom = (fields.get(name) for name in ("efi_disk", "tpm_state", "cdrom_file_id"))
        vga = fields["vga"]
        return Vm(
            **_base(guest),
            on_boot=fields["on_boot"],
            started=fields["started"],
            cpu=Cpu(cores=fields["cpu_cores"], type=fields["cpu_type"], numa=fields["memory_hotplug"]),
            memory=Memory(dedicated_mib=fields["memory_dedicated"], floating_mib=fields["memory_floating"]),
            hotplug=_HOTPLUG if fields["memory_hotplug"] else None,
            bios=fields["bios"],
            os_type=fields["os_type"],
            disks=tuple(_disk(disk, guest) for disk in (fields["boot_disk"], *fields["additional_disks"])),
            efi_disk=None if efi is None else EfiDisk(**_rename_fields(efi)),
            tpm=None if tpm is None else Tpm(**_rename_fields(tpm)),
            cdrom=None if cdrom is None else Cdrom(file=cdrom),
            nics=tuple(
                Nic(model=card["model"], **_card(guest, place, card))
                for place, card in enumerate(fields["network_interfaces"])
            ),
            display=Display(type=vga if isinstance(vga, str) else vga.get("type", "std")),
            agent=Agent(enabled=fields["agent_enabled"]),
            clone=None if clone is None else _clone(clone),
            cloud_init=self._cloud_init(guest),
            migrate=fields["migrate"],
            reboot_after_update=fields["reboot_after_update"],
            verify=Verify(agent=fields["agent_enabled"], address=fields["agent_enabled"]),
        )

    def _cloud_init(self, guest: Guest) -> CloudInit:
        fields, scope = guest.fields, self._understood.scope
        data = fields.get("cloud_init_user_data")
        shared = scope.data.get("vm_ssh_public_key")
        user = User(
            name=fields["user_account"]["username"],
            keys=(shared,) if shared else tuple(fields["user_account"].get("keys") or ()),
            password=_password(guest),
        )
        return CloudInit(
            datastore=fields["boot_disk"]["datastore_id"],
            users=(user,),
            user_data=None if data is None else Inline(text=self._read_data(data)),
        )


def build(
    understood: ParsedDeployment, document: ObjectText, found: Diagnostics, *, read_data: Callable[[str], str]
) -> Desired:
    """Return the model of an object; what cannot be built is reported and left out."""
    return ModelBuilder(understood, document, found, read_data=read_data).build()


def password_name(guest: Guest) -> str:
    """Return what the password of a guest is called among the secrets."""
    return f"{'containers' if guest.is_container else 'vms'}.{guest.key}.user_account.password"


def _password(guest: Guest) -> Secret | None:
    account = guest.fields.get("user_account") or {}
    return Secret(secret=password_name(guest)) if account.get("password") else None


def _base(guest: Guest) -> dict[str, Any]:
    fields = guest.fields
    servers: Sequence[str] = fields["dns_servers"]
    return {
        "key": guest.key,
        "name": guest.name,
        "node": guest.node,
        "vm_id": guest.vm_id,
        "description": fields["description"],
        "tags": tuple(fields["tags"]),
        "pool": fields["pool_id"],
        "protection": fields["protection"],
        "ha": HighAvailability() if fields["ha"] else None,
        "firewall": _without_nulls(fields["firewall"]),
        "replication": _without_nulls(fields["replication"]) or (),
        "startup": Startup(order=fields["startup_order"], up_delay_s=_UP_DELAY_S),
        "dns": Dns(servers=tuple(servers), domain=fields["domain"]) if servers or fields["domain"] else None,
    }


def _without_nulls(value: Any) -> Any:
    """Return a value without what is null in it, which counts as not written."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def _card(guest: Guest, place: int, card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card; the address of the guest is on its first."""
    fields = guest.fields
    common = {"bridge": card["bridge"], "vlan": fields["vlan_tag"], "firewall": card["firewall"]}
    if place:
        return common
    return {**common, "mac": fields["mac"], "ipv4": fields["address"], "gateway4": fields["gateway"]}


def _mount(mount: Mapping[str, Any], guest: Guest) -> MountPoint:
    size = mount["size"]
    is_kept = mount["backup"] and size is not None and guest.fields["backup"] is not False
    return MountPoint(
        path=mount["path"],
        volume=mount["volume"],
        size_gib=int(str(size).rstrip("G")) if size is not None else None,
        backup=is_kept,
        read_only=mount["read_only"],
    )


def _device(device: Mapping[str, Any]) -> Device:
    known = ("path", "mode", "uid", "gid", "deny_write")
    return Device(**{name: device[name] for name in known if device.get(name) is not None})


def _disk(disk: Mapping[str, Any], guest: Guest) -> Disk:
    return Disk(
        interface=disk["interface"],
        datastore=disk["datastore_id"],
        size_gib=disk["size"],
        format=disk["file_format"],
        iothread=disk["iothread"],
        ssd=disk["ssd"],
        discard=disk["discard"] == "on",
        replicate=disk["replicate"],
        backup=guest.fields["backup"] is not False,
    )


def _clone(clone: Mapping[str, Any]) -> Clone:
    return Clone(vm_id=clone["template_id"], full=clone.get("full") is not False, node=clone.get("node_name"))


def _rename_fields(part: Mapping[str, Any]) -> dict[str, Any]:
    known = {"datastore_id": "datastore", "type": "type", "pre_enrolled_keys": "pre_enrolled_keys"}
    known["version"] = "version"
    return {known[name]: value for name, value in part.items() if name in known and value is not None}
