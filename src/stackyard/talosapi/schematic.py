"""Schematics of an image factory: what an image has beyond Talos itself, and the id that follows from it.

The id is the SHA-256 of the schematic in one canonical YAML form, so it is known without a network: fields in
a fixed order, empty ones left out, four spaces of indent. The order of extensions and of kernel arguments
matters. Versions are no part of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml

from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import InvalidInputError
from stackyard.base.suggestions import did_you_mean
from stackyard.talosapi.canonical_yaml import write_yaml

__all__ = [
    "QEMU_GUEST_AGENT",
    "VANILLA_ID",
    "WELL_KNOWN",
    "MetaValue",
    "Overlay",
    "Schematic",
    "SchematicError",
    "canonical_yaml",
    "parse_schematic",
    "schematic_id",
]

QEMU_GUEST_AGENT = "siderolabs/qemu-guest-agent"
# The schematic in which nothing is customized.
VANILLA_ID = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"


class SchematicError(InvalidInputError):
    """A schematic has a field that an image factory does not know, or a value of another type."""

    code = "E-SCHEMATIC"
    summary = "The schematic cannot be used"
    default_remedy = "Correct the schematic; an image factory would refuse it too."


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaValue:
    """A value of the META partition, by its number."""

    key: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The overlay of a single-board computer."""

    image: str = ""
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schematic:
    """What an image contains.

    Attributes:
        owner: Who may use it, with factories that know owners.
        overlay: The overlay of a single-board computer.
        embedded_machine_configuration: A machine configuration inside the image.
        extra_kernel_args: Arguments of the kernel, in this order; `-name` removes one.
        meta: Values of the META partition.
        extensions: Official extensions, in this order: `siderolabs/qemu-guest-agent`.
        bootloader: The boot loader of the image, empty for the usual one.
        enroll_keys: When the image enrols its secure boot keys: `if-safe`, `manual`, `force`, `off`.
        well_known_certificates: Whether the well-known UEFI certificates are enrolled too.
        sector_size: The sector size of a disk image, 0 for the usual one.
    """

    owner: str = ""
    overlay: Overlay | None = None
    embedded_machine_configuration: str = ""
    extra_kernel_args: tuple[str, ...] = ()
    meta: tuple[MetaValue, ...] = ()
    extensions: tuple[str, ...] = ()
    bootloader: str = ""
    enroll_keys: str = ""
    well_known_certificates: bool = False
    sector_size: int = 0

    @property
    def has_guest_agent(self) -> bool:
        """Whether the image has the QEMU guest agent."""
        return QEMU_GUEST_AGENT in self.extensions


def schematic_id(schematic: Schematic) -> str:
    """Return the id of a schematic: 64 hexadecimal digits."""
    return hashlib.sha256(canonical_yaml(schematic).encode()).hexdigest()


def canonical_yaml(schematic: Schematic) -> str:
    """Return the text of which the id is the hash."""
    overlay = schematic.overlay
    boot = _present(
        enrollKeys=schematic.enroll_keys, includeWellKnownCertificates=schematic.well_known_certificates
    )
    customization = _present(
        embeddedMachineConfiguration=schematic.embedded_machine_configuration,
        extraKernelArgs=list(schematic.extra_kernel_args),
        meta=[dataclasses.asdict(one) for one in schematic.meta],
        systemExtensions=_present(officialExtensions=list(schematic.extensions)),
        bootloader=schematic.bootloader,
        secureboot=boot,
        diskImage=_present(sectorSize=schematic.sector_size),
    )
    top = _present(owner=schematic.owner, overlay={} if overlay is None else _describe_overlay(overlay))
    return write_yaml({**top, "customization": customization})


def _describe_overlay(overlay: Overlay) -> dict[str, Any]:
    if overlay == Overlay():
        return {}
    # An overlay has both, even where one is empty.
    return {"image": overlay.image, "name": overlay.name, **_present(options=_sort(overlay.options))}


def parse_schematic(text: str | bytes) -> Schematic:
    """Read a schematic, as YAML or JSON.

    Raises:
        SchematicError: It is neither, or has a field or a value that a factory refuses.
    """
    try:
        found = parse_yaml(text, SMALL)
    except yaml.YAMLError as err:
        raise SchematicError(f"The schematic is no YAML: {err}") from err
    problems: list[str] = []
    reader = _Reader(problems)
    schematic = _read(reader, reader.mapping({} if found is None else found, "", _TOP))
    if problems:
        raise SchematicError("\n".join(problems))
    return schematic


_TOP = ("owner", "overlay", "customization")
_OVERLAY = ("image", "name", "options")
_CUSTOMIZATION = (
    *("embeddedMachineConfiguration", "extraKernelArgs", "meta", "systemExtensions"),
    *("bootloader", "secureboot", "diskImage"),
)
_SECUREBOOT = ("enrollKeys", "includeWellKnownCertificates")


class _Reader:
    """Reads values of certain types, and collects what is wrong."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def mapping(self, value: Any, path: str, names: tuple[str, ...]) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._problems.append(f"{path or 'The schematic'} must be a mapping.")
            return {}
        for key in value:
            if key not in names:
                where = f"{path}.{key}" if path else str(key)
                self._problems.append(f"There is no field '{where}'.{did_you_mean(str(key), names)}")
        return value

    def one(self, value: Any, kind: type, path: str) -> Any:
        if value is None:
            return kind()
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self._problems.append(f"{path} must be {_KINDS[kind]}.")
            return kind()
        return value

    def many(self, value: Any, path: str) -> tuple[str, ...]:
        return tuple(self.one(one, str, f"{path}[{n}]") for n, one in enumerate(self.one(value, list, path)))


_KINDS = {str: "text", bool: "true or false", int: "a whole number", list: "a list", dict: "a mapping"}


def _read(reader: _Reader, found: Mapping[str, Any]) -> Schematic:
    top = "customization"
    inner = reader.mapping(found.get(top), top, _CUSTOMIZATION)
    boot = reader.mapping(inner.get("secureboot"), f"{top}.secureboot", _SECUREBOOT)
    extensions = reader.mapping(
        inner.get("systemExtensions"), f"{top}.systemExtensions", ("officialExtensions",)
    )
    disk = reader.mapping(inner.get("diskImage"), f"{top}.diskImage", ("sectorSize",))
    meta = reader.one(inner.get("meta"), list, f"{top}.meta")
    return Schematic(
        owner=reader.one(found.get("owner"), str, "owner"),
        overlay=_read_overlay(reader, found.get("overlay")),
        embedded_machine_configuration=reader.one(
            inner.get("embeddedMachineConfiguration"), str, f"{top}.embeddedMachineConfiguration"
        ),
        extra_kernel_args=reader.many(inner.get("extraKernelArgs"), f"{top}.extraKernelArgs"),
        meta=tuple(_read_meta(reader, one, f"{top}.meta[{n}]") for n, one in enumerate(meta)),
        extensions=reader.many(
            extensions.get("officialExtensions"), f"{top}.systemExtensions.officialExtensions"
        ),
        bootloader=reader.one(inner.get("bootloader"), str, f"{top}.bootloader"),
        enroll_keys=reader.one(boot.get("enrollKeys"), str, f"{top}.secureboot.enrollKeys"),
        well_known_certificates=reader.one(
            boot.get("includeWellKnownCertificates"), bool, f"{top}.secureboot.includeWellKnownCertificates"
        ),
        sector_size=reader.one(disk.get("sectorSize"), int, f"{top}.diskImage.sectorSize"),
    )


def _read_overlay(reader: _Reader, value: Any) -> Overlay | None:
    if value is None:
        return None
    found = reader.mapping(value, "overlay", _OVERLAY)
    return Overlay(
        image=reader.one(found.get("image"), str, "overlay.image"),
        name=reader.one(found.get("name"), str, "overlay.name"),
        options=reader.one(found.get("options"), dict, "overlay.options"),
    )


def _read_meta(reader: _Reader, value: Any, path: str) -> MetaValue:
    found = reader.mapping(value, path, ("key", "value"))
    return MetaValue(
        key=reader.one(found.get("key"), int, f"{path}.key"),
        value=reader.one(found.get("value"), str, f"{path}.value"),
    )


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def _sort(value: Any) -> Any:
    """Order the keys of options, which a factory keeps in no order of their own."""
    if isinstance(value, Mapping):
        return {key: _sort(value[key]) for key in sorted(value)}
    return [_sort(one) for one in value] if isinstance(value, list | tuple) else value


# Schematics of which everybody knows the id: Talos alone, and Talos with the guest agent.
WELL_KNOWN: Mapping[str, Schematic] = MappingProxyType(
    {schematic_id(one): one for one in (Schematic(), Schematic(extensions=(QEMU_GUEST_AGENT,)))}
)
