"""Guests as they are written down: templates in `vms/`, entries of an env.

Every field of the `Desired` model is there under its own name, beside the short forms of such sites: `cores`,
`memory`, `disk`, `bridge`, `ip`, `gateway`, `vmid`. A container is made from its `image`, because `template`
names a file of `vms/`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, StringConstraints, Tag, model_validator

from stackyard.desired import container, disks, guest, nic
from stackyard.desired.hardware import Cpu, Memory
from stackyard.desired.values import GuestName, InterfaceName, Key, Mac, Many, VlanTag, VmId
from stackyard.desired.vm import Vm
from stackyard.sources.site.addresses import Interface
from stackyard.sources.site.entities.partial import partial
from stackyard.sources.site.entities.presets import Cores, DiskGib, MemoryMib
from stackyard.sources.site.entities.values import Entity, HostAddress, Line, Name

__all__ = ["NOT_IN_FILES", "SHORT_FORMS", "Entry", "EntryBase", "GuestType", "ImageName", "TemplateFile"]

GuestType = Literal["vm", "ct"]
# Addresses with what the seed allows: nothing and `dhcp` are the same.
_WORDS = ("dhcp", "manual", "auto")


def _address(text: str) -> str:
    if text in _WORDS:
        return text
    if "/" not in text:
        raise ValueError("write `dhcp`, or an address with its prefix length, as 192.0.2.10/24")
    return str(Interface.parse(text))


Address = Annotated[str, AfterValidator(_address)]
ImageName = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^\S+$")]

MemoryPart: Any = partial(
    "MemoryPart",
    Memory,
    container.ContainerMemory,
    doc="The memory of a guest, in MiB.",
)


def _kind(value: Any) -> str:
    return "mapping" if isinstance(value, dict | Entity) else "number"


# Told apart by what is there, so that an error speaks of one of them and not of both.
MemoryField = Annotated[
    Annotated[MemoryMib, Tag("number")] | Annotated[MemoryPart, Tag("mapping")], Discriminator(_kind)
]
NicPart: Any = partial(
    "NicPart",
    nic.Nic,
    nic.ContainerNic,
    doc="A network card of a guest; `network` names one that the site or the env declares.",
    replaced={"network": Name, "mtu": int},
)
DiskPart: Any = partial("DiskPart", disks.Disk, doc="A disk; on the node's datastore when none is named.")
EfiDiskPart: Any = partial("EfiDiskPart", disks.EfiDisk, doc="Where UEFI keeps its variables.")
TpmPart: Any = partial("TpmPart", disks.Tpm, doc="The state of a TPM.")
RootDiskPart: Any = partial("RootDiskPart", container.RootDisk, doc="The disk that a container is on.")
CloudInitPart: Any = partial(
    "CloudInitPart", guest.CloudInit, doc="What cloud-init does when the guest first boots."
)


class EntryBase(Entity):
    """What can be said of a guest in one place, without contradicting itself."""

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> Self:
        said = self.model_fields_set
        for short, long in _ONE_OF:
            if short in said and long in said:
                raise ValueError(f"`{short}` and `{long}` say the same: keep one of them")
        for short, outer, inner in _INSIDE:
            if short in said and outer in said and inner in getattr(self, outer).model_fields_set:
                raise ValueError(f"`{short}` and `{outer}.{inner}` say the same: keep one of them")
        return self


_ONE_OF = (
    ("vmid", "vm_id"),
    ("preset", "vm_preset"),
    ("bridge", "network"),
    *((short, "nics") for short in ("bridge", "network", "ip", "gateway", "vlan", "mac")),
)
_INSIDE = (
    ("cores", "cpu", "cores"),
    ("disk", "root_disk", "size_gib"),
    ("packages", "cloud_init", "packages"),
)

SHORT_FORMS: dict[str, Any] = {
    "type": GuestType,
    "preset": Name,
    "vm_preset": Name,
    "image": ImageName,
    "spec": Name,
    "cores": Cores,
    "memory": MemoryField,
    "disk": DiskGib,
    "bridge": InterfaceName,
    "network": Name,
    "ip": Address,
    "gateway": HostAddress,
    "vlan": VlanTag,
    "mac": Mac,
    "packages": Many[Line],
    # Whether it is backed up; the names of jobs of hypervisors/ put it into the pool that they take.
    "backup": bool | Line | Many[Line],
    "vmid": VmId,
    "vm_id": VmId,
    "nics": Many[NicPart],
    "disks": Many[DiskPart],
    "efi_disk": EfiDiskPart,
    "tpm": TpmPart,
    "root_disk": RootDiskPart,
    "cloud_init": CloudInitPart,
    "cpu": partial("CpuPart", Cpu, doc="The processors of a guest."),
}
# Only a guest itself can say these.
NOT_IN_FILES = ("key", "name", "node", "template", "imported", "vm_id_counted")

TemplateFile: Any = partial(
    "TemplateFile",
    Vm,
    container.Container,
    doc="A template: what guests have in common.",
    without=NOT_IN_FILES,
    replaced=SHORT_FORMS,
    base=EntryBase,
)


class _RequiredKeys(EntryBase):
    """What an entry of an env must say."""

    name: GuestName


Entry: Any = partial(
    "Entry",
    Vm,
    container.Container,
    doc="A guest of an env.",
    without=NOT_IN_FILES,
    replaced={**SHORT_FORMS, "template": Name, "key": Key, "node": Name, "imported": bool},
    base=_RequiredKeys,
)
