"""Devices of a VM that are one property each: written for the API, and read back."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from stackyard.fields.guest import STARTUP
from stackyard.fields.properties import flag, list_numbered, parse, render
from stackyard.fields.vm import AGENT, AMD_SEV, AUDIO, DISPLAY, RANDOM_NUMBERS, WATCHDOG
from stackyard.provider.resources.vm.blocks import PriorState, is_managed, one, shows
from stackyard.provider.values import known_block

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

_AGENT = {**AGENT.defaults(), "timeout": "15m"}
_WATCHDOG = {**WATCHDOG.defaults(), "enabled": False}
_SMBIOS = ("family", "manufacturer", "product", "serial", "sku", "version")
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
    return AGENT.write_text(one(state, "agent", _AGENT))


def amd_sev_text(state: Object) -> str | None:
    """Return the encryption of memory by the processor."""
    if known_block(state, "amd_sev") is None:
        return None
    return AMD_SEV.write_text(one(state, "amd_sev", AMD_SEV.defaults()))


def audio_text(state: Object) -> str | None:
    """Return the sound card."""
    audio = known_block(state, "audio_device")
    if audio is None or audio.get("enabled") is False:
        return None
    return AUDIO.write_text(audio)


def rng_text(state: Object) -> str | None:
    """Return the source of random numbers."""
    if known_block(state, "rng") is None:
        return None
    return RANDOM_NUMBERS.write_text(one(state, "rng", RANDOM_NUMBERS.defaults()))


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
    return None if block is None else STARTUP.write_text(block) or None


def vga_text(state: Object) -> str | None:
    """Return the display."""
    if known_block(state, "vga") is None:
        return None
    return DISPLAY.write_text(one(state, "vga", DISPLAY.defaults()))


def watchdog_text(state: Object) -> str | None:
    """Return the watchdog, when it is enabled."""
    watchdog = one(state, "watchdog", _WATCHDOG)
    if not watchdog["enabled"]:
        return None
    return WATCHDOG.write_text(watchdog)


def read_devices(config: Mapping[str, Any], shown: PriorState) -> Object:
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


def _read_agent(config: Mapping[str, Any], shown: PriorState) -> Object:
    if config.get("agent") is None:
        return shows(shown, "agent", None, default=_AGENT)
    known = known_block(shown.known, "agent") or {}
    agent = {
        **AGENT.read_text(config["agent"]),
        # How long to wait, and for what, is known to us alone.
        "timeout": known.get("timeout") or "15m",
        "wait_for_ip": known.get("wait_for_ip") or [],
    }
    return shows(shown, "agent", agent, default=_AGENT)


def _read_amd_sev(config: Mapping[str, Any], shown: PriorState) -> Object:
    sev = AMD_SEV.read_text(config["amd-sev"]) if config.get("amd-sev") else None
    return shows(shown, "amd_sev", sev, default=AMD_SEV.defaults())


def _read_audio(config: Mapping[str, Any], shown: PriorState) -> Object:
    if not is_managed(shown, "audio_device"):
        return {}
    if config.get("audio0") is None:
        return {"audio_device": []}
    return {"audio_device": [{**AUDIO.read_text(config["audio0"]), "enabled": True}]}


def _read_rng(config: Mapping[str, Any], shown: PriorState) -> Object:
    rng = RANDOM_NUMBERS.read_text(config["rng0"]) if config.get("rng0") else None
    return shows(shown, "rng", rng, default=RANDOM_NUMBERS.defaults())


def _read_serials(config: Mapping[str, Any], shown: PriorState) -> Object:
    if not is_managed(shown, "serial_device"):
        return {}
    found = {number: str(value) for number, value in list_numbered(config, "serial") if number < _SERIALS}
    last = max(found, default=-1)
    return {"serial_device": [{"device": found.get(number, "")} for number in range(last + 1)]}


def _read_smbios(config: Mapping[str, Any], shown: PriorState) -> Object:
    if shown.is_clone:
        return {}
    if not config.get("smbios1"):
        return {"smbios": []}
    found = parse(config["smbios1"], "uuid")
    is_encoded = flag(found.get("base64"))
    smbios: Object = {name: _decode(found.get(name, ""), is_encoded) for name in _SMBIOS}
    is_shown = bool(shown.known.get("smbios")) or any(smbios.values())
    smbios["uuid"] = found.get("uuid")
    return {"smbios": [smbios] if is_shown else []}


def _decode(value: str, is_encoded: bool) -> str:
    if not is_encoded:
        return value
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _read_startup(config: Mapping[str, Any], shown: PriorState) -> Object:
    if not is_managed(shown, "startup"):
        return {}
    if not config.get("startup"):
        # A block that sets nothing leaves no trace.
        known = known_block(shown.known, "startup")
        return {"startup": [known] if known is not None and startup_text(shown.known) is None else []}
    return {"startup": [STARTUP.read_text(config["startup"])]}


def _read_vga(config: Mapping[str, Any], shown: PriorState) -> Object:
    vga = DISPLAY.read_text(config.get("vga", ""))
    if config.get("vga"):
        vga["type"] = parse(config["vga"], DISPLAY.bare).get("type")
    return shows(shown, "vga", vga, default=DISPLAY.defaults())


def _read_watchdog(config: Mapping[str, Any], shown: PriorState) -> Object:
    if not config.get("watchdog"):
        known = known_block(shown.known, "watchdog")
        if known is not None and not known.get("enabled"):
            return {}
        return shows(shown, "watchdog", dict(_WATCHDOG), default=_WATCHDOG)
    watchdog = {**WATCHDOG.read_text(config["watchdog"]), "enabled": True}
    return shows(shown, "watchdog", watchdog, default=_WATCHDOG)
