"""The attributes of a VM that are one value each, and the processor, memory and operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.guest import join_tags, split_tags
from stackyard.fields.properties import flag, parse, render, text
from stackyard.fields.vm import BASICS, CPU, MEMORY
from stackyard.provider.resources.vm.blocks import PriorState, one, shows
from stackyard.provider.values import get_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = [
    "basics_params",
    "cpu_params",
    "memory_params",
    "read_basics",
    "read_cpu",
    "read_memory",
    "read_operating_system",
]


def basics_params(state: Object) -> dict[str, Any]:
    """Return the single values for a new VM; an empty text is left out."""
    return {
        **BASICS.write(state),
        "tags": join_tags(state.get("tags")),
        "hotplug": get_known(state, "hotplug") or None,
        "onboot": bool(state["on_boot"]),
    }


def read_basics(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the single values; a clone shows only those that its configuration sets."""
    found: Object = {}
    for row in BASICS:
        # What a clone has from its source is shown only where its own configuration says something.
        if not shown.is_clone or shown.known.get(row.name) not in (None, row.usual):
            found[row.name] = row.read(config)
    if not shown.is_clone or shown.known.get("tags"):
        found["tags"] = sorted(split_tags(config.get("tags")))
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
    sent = CPU.write(one(state, "cpu", CPU.defaults()))
    emulated = {name: sent.pop(name) for name in ("cputype", "flags")}
    return {**sent, "cpu": render(emulated) if emulated["flags"] else emulated["cputype"]}


def read_cpu(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the block of the processor."""
    cpu = CPU.read({**config, **parse(config.get("cpu", ""), "cputype")})
    # NUMA alone and the affinity do not make the original show the block.
    ignored = {"numa": False, "affinity": ""}
    return shows(shown, "cpu", cpu, ignore=ignored, default=CPU.defaults())


def memory_params(state: Object, vm_id: int) -> dict[str, Any]:
    """Return the memory: that of the block, or the default."""
    sent = MEMORY.write(one(state, "memory", MEMORY.defaults()))
    size = sent["ivshmem"]
    return {**sent, "ivshmem": render({"size": size, "name": f"vm-{vm_id}-ivshmem"}) if size else None}


def read_memory(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the block of the memory."""
    current = parse(config.get("memory", ""), "current").get("current")
    shared = parse(config.get("ivshmem", ""), "size").get("size")
    memory = MEMORY.read({**config, "memory": current, "ivshmem": shared})
    return shows(shown, "memory", memory, default=MEMORY.defaults())


def read_operating_system(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the block of the operating system."""
    return shows(shown, "operating_system", {"type": text(config.get("ostype"))}, default={"type": "other"})
