"""The attributes of a VM that are one value each, and the processor, memory and operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import FLAG, TEXT, Field, Form
from stackyard.provider.resources.vm.blocks import Shown, one, shows
from stackyard.provider.resources.vm.properties import flag, parse, render, text, whole
from stackyard.provider.values import given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = [
    "FIELDS",
    "basics_params",
    "cpu_params",
    "memory_params",
    "read_basics",
    "read_cpu",
    "read_memory",
    "read_operating_system",
    "tags_text",
]

_CPU = {
    "affinity": "",
    "architecture": "",
    "cores": 1,
    "flags": [],
    "hotplugged": 0,
    "limit": 0,
    "numa": False,
    "sockets": 1,
    "type": "qemu64",
    "units": 0,
}
_MEMORY = {"dedicated": 512, "floating": 0, "hugepages": "", "keep_hugepages": False, "shared": 0}


def tags_text(tags: list[str] | None) -> str:
    """Return tags as Proxmox takes them."""
    return ";".join(sorted(tag.strip() for tag in tags or () if tag and tag.strip()))


def _read_tags(value: Any) -> list[str]:
    return sorted(tag.strip() for tag in str(value).split(";") if tag.strip())


_TAGS = Form(write=tags_text, read=_read_tags)
# An empty text for "args" comes back as a blank.
_ARGUMENTS = Form(write=str, read=lambda value: str(value) if str(value).strip() else "")

# Each with the value that Proxmox takes when it has none.
FIELDS: tuple[tuple[Field, Any], ...] = (
    (Field(attribute="acpi", form=FLAG), True),
    (Field(attribute="kvm_arguments", key="args", form=_ARGUMENTS), ""),
    (Field(attribute="bios", form=TEXT), "seabios"),
    (Field(attribute="description", form=TEXT), ""),
    (Field(attribute="hook_script_file_id", key="hookscript", form=TEXT), ""),
    (Field(attribute="keyboard_layout", key="keyboard", form=TEXT), "en-us"),
    (Field(attribute="machine", form=TEXT), ""),
    (Field(attribute="name", form=TEXT), ""),
    (Field(attribute="protection", form=FLAG), False),
    (Field(attribute="tablet_device", key="tablet", form=FLAG), True),
    (Field(attribute="scsi_hardware", key="scsihw", form=TEXT), "virtio-scsi-pci"),
)


def basics_params(state: Object) -> dict[str, Any]:
    """Return the single values for a new VM; an empty text is left out."""
    sent = {field.name: field.form.write(state[field.attribute]) for field, _ in FIELDS}
    sent["tags"] = tags_text(state.get("tags"))
    sent["hotplug"] = given(state, "hotplug") or ""
    return {name: value for name, value in sent.items() if value != ""} | {"onboot": bool(state["on_boot"])}


def read_basics(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the single values; a clone shows only those that its configuration sets."""
    found: Object = {}
    for field, default in FIELDS:
        known = shown.known.get(field.attribute)
        # What a clone has from its source is shown only where its own configuration says something.
        if not shown.is_clone or known not in (None, default):
            value = config.get(field.name)
            found[field.attribute] = default if value is None else field.form.read(value)
    if not shown.is_clone or shown.known.get("tags"):
        found["tags"] = _read_tags(config.get("tags", ""))
    if not shown.is_clone or shown.known.get("template"):
        found["template"] = flag(config.get("template"))
    if config.get("hotplug") is not None:
        found["hotplug"] = str(config["hotplug"])
    found["on_boot"] = flag(config.get("onboot"))
    order = parse(config.get("boot", ""), "legacy").get("order")
    found["boot_order"] = None if order is None else order.split(";")
    return found


def cpu_params(state: Object) -> dict[str, Any]:
    """Return the processor: that of the block, or the default one."""
    cpu = one(state, "cpu", _CPU)
    return {
        "cores": cpu["cores"],
        "sockets": cpu["sockets"],
        "numa": bool(cpu["numa"]),
        "cpu": _cpu_text(cpu),
        "affinity": cpu["affinity"] or None,
        "arch": cpu["architecture"] or None,
        "vcpus": cpu["hotplugged"] or None,
        "cpulimit": cpu["limit"] or None,
        "cpuunits": cpu["units"] or None,
    }


def _cpu_text(cpu: Object) -> str:
    if not cpu["flags"]:
        return str(cpu["type"])
    return render({"cputype": cpu["type"], "flags": ";".join(cpu["flags"])})


def read_cpu(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the block of the processor."""
    emulated = parse(config.get("cpu", ""), "cputype")
    limit = float(config.get("cpulimit") or 0)
    cpu = {
        "affinity": text(config.get("affinity")),
        "architecture": text(config.get("arch")),
        "cores": whole(config.get("cores"), 1),
        "flags": [part for part in emulated.get("flags", "").split(";") if part],
        "hotplugged": whole(config.get("vcpus")),
        "limit": int(limit) if limit.is_integer() else limit,
        "numa": flag(config.get("numa")),
        "sockets": whole(config.get("sockets"), 1),
        "type": emulated.get("cputype", "qemu64"),
        "units": whole(config.get("cpuunits")),
    }
    # NUMA alone and the affinity do not make the original show the block.
    ignored = {"numa": False, "affinity": ""}
    return shows(shown, "cpu", cpu, ignore=ignored, default=_CPU)


def memory_params(state: Object, vm_id: int) -> dict[str, Any]:
    """Return the memory: that of the block, or the default."""
    memory = one(state, "memory", _MEMORY)
    shared = memory["shared"]
    return {
        "memory": memory["dedicated"],
        "balloon": memory["floating"],
        "ivshmem": render({"size": shared, "name": f"vm-{vm_id}-ivshmem"}) if shared else None,
        "hugepages": memory["hugepages"] or None,
        "keephugepages": memory["keep_hugepages"] or None,
    }


def read_memory(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the block of the memory."""
    memory = {
        "dedicated": whole(parse(config.get("memory", ""), "current").get("current")),
        "floating": whole(config.get("balloon")),
        "hugepages": text(config.get("hugepages")),
        "keep_hugepages": flag(config.get("keephugepages")),
        "shared": whole(parse(config.get("ivshmem", ""), "").get("size")),
    }
    return shows(shown, "memory", memory, default=_MEMORY)


def read_operating_system(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the block of the operating system."""
    return shows(shown, "operating_system", {"type": text(config.get("ostype"))}, default={"type": "other"})
