"""Devices of a VM that are one property each: written for the API, and read back."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.vm.blocks import Shown, is_managed, known_block, one, shows
from stackyard.provider.resources.vm.properties import flag, numbered, parse, render, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = [
    "agent_text",
    "device_params",
    "read_devices",
    "smbios_text",
    "startup_text",
    "vga_text",
    "watchdog_text",
]

_AGENT = {"enabled": False, "timeout": "15m", "trim": False, "type": "virtio"}
_AMD_SEV = {
    "allow_smt": True,
    "kernel_hashes": False,
    "no_debug": False,
    "no_key_sharing": False,
    "type": "std",
}
_RNG = {"source": "", "max_bytes": 1024, "period": 1000}
_VGA = {"clipboard": "", "memory": 16, "type": "std"}
_WATCHDOG = {"action": "none", "enabled": False, "model": "i6300esb"}
_SMBIOS = ("family", "manufacturer", "product", "serial", "sku", "version")
_UNSET_ORDER = -1
_SERIALS = 4


def device_params(state: Object) -> dict[str, Any]:
    """Return every such device for a new VM; what there is not is None."""
    params = {
        "agent": agent_text(state),
        "amd-sev": amd_sev_text(state),
        "audio0": audio_text(state),
        "rng0": rng_text(state),
        "smbios1": smbios_text(state),
        "startup": startup_text(state),
        "vga": vga_text(state),
        "watchdog": watchdog_text(state),
    }
    serials = [block.get("device") or "socket" for block in state.get("serial_device") or ()]
    return params | {f"serial{number}": device for number, device in enumerate(serials)}


def agent_text(state: Object) -> str:
    """Return how the guest agent is used."""
    agent = one(state, "agent", _AGENT)
    return render(
        {
            "enabled": bool(agent["enabled"]),
            "fstrim_cloned_disks": bool(agent["trim"]),
            "type": agent["type"],
        }
    )


def amd_sev_text(state: Object) -> str | None:
    """Return the encryption of memory by the processor."""
    if known_block(state, "amd_sev") is None:
        return None
    sev = one(state, "amd_sev", _AMD_SEV)
    return render(
        {
            "type": sev["type"],
            "allow-smt": bool(sev["allow_smt"]),
            "kernel-hashes": bool(sev["kernel_hashes"]),
            "no-debug": bool(sev["no_debug"]),
            "no-key-sharing": bool(sev["no_key_sharing"]),
        }
    )


def audio_text(state: Object) -> str | None:
    """Return the sound card."""
    audio = known_block(state, "audio_device")
    if audio is None or audio.get("enabled") is False:
        return None
    return render({"device": audio.get("device"), "driver": audio.get("driver")})


def rng_text(state: Object) -> str | None:
    """Return the source of random numbers."""
    if known_block(state, "rng") is None:
        return None
    rng = one(state, "rng", _RNG)
    return render(
        {"source": rng["source"], "max_bytes": rng["max_bytes"] or 1024, "period": rng["period"] or 1000}
    )


def smbios_text(state: Object) -> str | None:
    """Return what the VM says about itself to its operating system."""
    block = known_block(state, "smbios")
    if block is None:
        return None
    encoded = {
        name: base64.b64encode(str(block[name]).encode()).decode() for name in _SMBIOS if block.get(name)
    }
    uuid = block.get("uuid")
    return render({"base64": True, **encoded, "uuid": uuid if isinstance(uuid, str) and uuid else None})


def startup_text(state: Object) -> str | None:
    """Return the order of starting."""
    block = known_block(state, "startup")
    if block is None:
        return None
    names = {"order": "order", "up": "up_delay", "down": "down_delay"}
    given = {name: block.get(attribute) for name, attribute in names.items()}
    return render({name: value for name, value in given.items() if value is not None and value >= 0}) or None


def vga_text(state: Object) -> str | None:
    """Return the display."""
    if known_block(state, "vga") is None:
        return None
    vga = one(state, "vga", _VGA)
    return render(
        {"clipboard": vga["clipboard"] or None, "memory": vga["memory"] or None, "type": vga["type"]}
    )


def watchdog_text(state: Object) -> str | None:
    """Return the watchdog, when it is enabled."""
    watchdog = one(state, "watchdog", _WATCHDOG)
    if not watchdog["enabled"]:
        return None
    return render({"model": watchdog["model"], "action": watchdog["action"]})


def read_devices(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the blocks of all of them."""
    return {
        **_read_agent(config, shown),
        **_read_amd_sev(config, shown),
        **_read_audio(config, shown),
        **_read_rng(config, shown),
        **_read_serials(config, shown),
        **_read_smbios(config, shown),
        **_read_startup(config, shown),
        **_read_vga(config, shown),
        **_read_watchdog(config, shown),
    }


def _read_agent(config: Mapping[str, Any], shown: Shown) -> Object:
    if config.get("agent") is None:
        return shows(shown, "agent", None, default=_AGENT)
    found = parse(config["agent"], "enabled")
    known = known_block(shown.known, "agent") or {}
    agent = {
        "enabled": flag(found.get("enabled")),
        # How long to wait, and for what, is known to us alone.
        "timeout": known.get("timeout") or "15m",
        "trim": flag(found.get("fstrim_cloned_disks")),
        "type": found.get("type", "virtio"),
        "wait_for_ip": known.get("wait_for_ip") or [],
    }
    return shows(shown, "agent", agent, default=_AGENT)


def _read_amd_sev(config: Mapping[str, Any], shown: Shown) -> Object:
    if not config.get("amd-sev"):
        return shows(shown, "amd_sev", None, default=_AMD_SEV)
    found = parse(config["amd-sev"], "type")
    sev = {
        "allow_smt": flag(found.get("allow-smt")),
        "kernel_hashes": flag(found.get("kernel-hashes")),
        "no_debug": flag(found.get("no-debug")),
        "no_key_sharing": flag(found.get("no-key-sharing")),
        "type": found.get("type", ""),
    }
    return shows(shown, "amd_sev", sev, default=_AMD_SEV)


def _read_audio(config: Mapping[str, Any], shown: Shown) -> Object:
    if not is_managed(shown, "audio_device"):
        return {}
    if config.get("audio0") is None:
        return {"audio_device": []}
    found = parse(config["audio0"], "device")
    device = {"device": found.get("device", ""), "driver": found.get("driver", ""), "enabled": True}
    return {"audio_device": [device]}


def _read_rng(config: Mapping[str, Any], shown: Shown) -> Object:
    if not config.get("rng0"):
        return shows(shown, "rng", None, default=_RNG)
    found = parse(config["rng0"], "source")
    rng = {
        "source": found.get("source", ""),
        "max_bytes": whole(found["max_bytes"]) if "max_bytes" in found else None,
        "period": whole(found["period"]) if "period" in found else None,
    }
    return shows(shown, "rng", rng, default=_RNG)


def _read_serials(config: Mapping[str, Any], shown: Shown) -> Object:
    if not is_managed(shown, "serial_device"):
        return {}
    found = {number: str(value) for number, value in numbered(config, "serial") if number < _SERIALS}
    last = max(found, default=-1)
    return {"serial_device": [{"device": found.get(number, "")} for number in range(last + 1)]}


def _read_smbios(config: Mapping[str, Any], shown: Shown) -> Object:
    if shown.is_clone:
        return {}
    if not config.get("smbios1"):
        return {"smbios": []}
    found = parse(config["smbios1"], "uuid")
    is_encoded = flag(found.get("base64"))
    smbios: Object = {name: _decoded(found.get(name, ""), is_encoded) for name in _SMBIOS}
    is_shown = bool(shown.known.get("smbios")) or any(smbios.values())
    smbios["uuid"] = found.get("uuid")
    return {"smbios": [smbios] if is_shown else []}


def _decoded(value: str, is_encoded: bool) -> str:
    if not is_encoded:
        return value
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _read_startup(config: Mapping[str, Any], shown: Shown) -> Object:
    if not is_managed(shown, "startup"):
        return {}
    if not config.get("startup"):
        # A block that sets nothing leaves no trace.
        known = known_block(shown.known, "startup")
        return {"startup": [known] if known is not None and startup_text(shown.known) is None else []}
    found = parse(config["startup"], "order")
    startup = {
        "order": whole(found.get("order"), _UNSET_ORDER),
        "up_delay": whole(found.get("up"), _UNSET_ORDER),
        "down_delay": whole(found.get("down"), _UNSET_ORDER),
    }
    return {"startup": [startup]}


def _read_vga(config: Mapping[str, Any], shown: Shown) -> Object:
    found = parse(config.get("vga", ""), "type")
    has_one = bool(config.get("vga"))
    vga = {
        "clipboard": found.get("clipboard", ""),
        "memory": whole(found.get("memory"), 16),
        "type": found.get("type") if has_one else "std",
    }
    return shows(shown, "vga", vga, default=_VGA)


def _read_watchdog(config: Mapping[str, Any], shown: Shown) -> Object:
    found = parse(config["watchdog"], "model") if config.get("watchdog") else None
    if found is None:
        known = known_block(shown.known, "watchdog")
        if known is not None and not known.get("enabled"):
            return {}
        return shows(shown, "watchdog", dict(_WATCHDOG), default=_WATCHDOG)
    watchdog = {
        "action": text(found.get("action")) or "none",
        "enabled": True,
        "model": text(found.get("model")) or "i6300esb",
    }
    return shows(shown, "watchdog", watchdog, default=_WATCHDOG)
