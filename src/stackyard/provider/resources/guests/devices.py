"""Network cards and disks of a clone by their slots: only what a configuration names is set and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import format_of
from stackyard.fields.properties import GIB, number, parse, parse_size, render
from stackyard.provider import fields
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field, Form
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.values import get_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["card_text", "disk_size_gb", "disk_text", "is_same", "new_disk_text", "read_card", "read_disk"]

_TRUNKS = Form(
    write=lambda value: ";".join(str(one) for one in sorted(value)) or None,
    read=lambda value: sorted(int(one) for one in str(value).split(";") if one),
)
_CARD = (
    Field(attribute="model", form=TEXT),
    Field(attribute="mac_address", key="macaddr", form=TEXT),
    Field(attribute="bridge", form=TEXT),
    Field(attribute="firewall", form=FLAG),
    Field(attribute="link_down", form=FLAG),
    Field(attribute="mtu", form=NUMBER),
    Field(attribute="queues", form=NUMBER),
    Field(attribute="rate_limit", key="rate", form=NUMBER),
    Field(attribute="tag", form=NUMBER),
    Field(attribute="trunks", form=_TRUNKS),
)
_DISK = (
    Field(attribute="aio", form=TEXT),
    Field(attribute="backup", form=FLAG),
    Field(attribute="cache", form=TEXT),
    Field(attribute="discard", form=TEXT),
    Field(attribute="iothread", form=FLAG),
    Field(attribute="media", form=TEXT),
    Field(attribute="replicate", form=FLAG),
    Field(attribute="serial", form=TEXT),
    Field(attribute="ssd", form=FLAG),
)
# What a property that is not there means.
_UNSET = {
    **dict.fromkeys(("firewall", "link_down", "iothread", "ssd"), False),
    **dict.fromkeys(("backup", "replicate"), True),
    "aio": "io_uring",
    "cache": "none",
    "discard": "ignore",
    "media": "disk",
    "trunks": [],
}
_CARD_NAMES = {one.name for one in _CARD}
# The property that may come without its name, of those that are property strings.
_BARE = {"cpu": "cputype", "rng0": "source", "vga": "type", "memory": "current"}


def _parse_card(text: str) -> dict[str, str]:
    found = parse(text, "model")
    # A card is written `virtio=BC:24:11:..`, the model being the name of the address.
    model = next((name for name in found if name not in _CARD_NAMES), None)
    if model is not None:
        found = {"model": model, "macaddr": found.pop(model), **found}
    return found


def card_text(card: Object, current: str | None) -> str:
    """Return a network card; what its configuration leaves out stays, the address above all."""
    there = {"model": "virtio"} if current is None else _parse_card(current)
    return render({**there, **fields.params(_CARD, card)})


def read_card(known: Object, text: str) -> Object:
    """Return what a configuration says of a card, as it is now."""
    return _read(_CARD, known, _parse_card(text))


def new_disk_text(slot: str, disk: Object) -> str:
    """Return a disk that is to be made, or an existing volume that is to be attached.

    Raises:
        AttributeValueError: Nothing says where it is to be made, or how large.
    """
    volume, source = get_known(disk, "file"), get_known(disk, "import_from")
    storage, size = get_known(disk, "datastore_id"), get_known(disk, "size_gb")
    if not volume and not storage:
        raise AttributeValueError(
            f"The VM has no disk {slot}: to make one, `datastore_id` and `size_gb` are needed, or `file` to "
            "attach a volume.",
            ("disk",),
        )
    if not volume and not size and not source:
        raise AttributeValueError(
            f"The VM has no disk {slot}: to make one on {storage}, `size_gb` is needed.", ("disk",)
        )
    begins = volume or (f"{storage}:0" if source else f"{storage}:{size}")
    made = {
        "file": begins,
        "import-from": None if volume else source,
        "format": get_known(disk, "format"),
    }
    return render({**made, **fields.params(_DISK, disk)})


def disk_text(disk: Object, current: str) -> str:
    """Return a disk that is there, with the options and the volume that its configuration names."""
    there = {key: value for key, value in parse(current, "file").items() if key not in ("size", "format")}
    volume = get_known(disk, "file")
    return render({**there, **({"file": volume} if volume else {}), **fields.params(_DISK, disk)})


def disk_size_gb(text: str) -> int | None:
    """Return how many whole GiB a disk has; None where Proxmox does not say it."""
    size = parse_size(parse(text, "file").get("size"))
    return None if size is None else size // GIB


def read_disk(known: Object, text: str) -> Object:
    """Return what a configuration says of a disk, as it is now."""
    found = parse(text, "file")
    state = _read(_DISK, known, found)
    volume, size = found.get("file", ""), disk_size_gb(text)
    shown = {
        "file": volume,
        "datastore_id": volume.partition(":")[0] if ":" in volume else None,
        "size_gb": size,
        "format": format_of(found),
    }
    return state | {
        name: value for name, value in shown.items() if known.get(name) is not None and value is not None
    }


def _read(table: tuple[Field, ...], known: Object, found: Mapping[str, Any]) -> Object:
    """Return the attributes that are known, each as it is; those that no configuration names stay null."""
    read = fields.values(table, found)
    state = dict(known)
    for name, value in read.items():
        before, now = known.get(name), _UNSET.get(name) if value is None else value
        if before is not None and not _means_same(before, now):
            state[name] = now
    return state


def _means_same(before: Any, now: Any) -> bool:
    if isinstance(before, list) and isinstance(now, list):
        return sorted(before) == sorted(now)
    if isinstance(before, str) and isinstance(now, str):
        # Proxmox writes addresses in capital letters.
        return before.lower() == now.lower()
    return bool(before == now)


def is_same(key: str, there: Any, wanted: Any) -> bool:
    """Tell whether a property is set already, in whatever spelling."""
    if there is None:
        return False
    if key == "tags":
        return sorted(str(there).split(";")) == sorted(str(wanted).split(";"))
    return bool(_plain(key, there) == _plain(key, wanted))


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, bool):
        return {"": str(int(value))}
    if key.startswith("net"):
        return {name: part.lower() for name, part in _parse_card(str(value)).items()}
    if key in ("name", "description"):
        return str(value).rstrip()
    if key not in _BARE and key.rstrip("0123456789") not in ("ide", "sata", "scsi", "virtio"):
        return {"": str(number(value)) if str(value).replace(".", "").isdigit() else str(value)}
    parts = parse(value, _BARE.get(key, "file"))
    return {name: part for name, part in parts.items() if name not in ("size", "format")}
