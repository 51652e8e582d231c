"""The names of resources: readable, derived from a key alone, and never the same for two keys."""

from __future__ import annotations

import re

__all__ = ["DATA_FIELDS", "address", "key_of", "label"]

# The pieces of cloud-init data that a guest may have as files of its own; their keys are `GUEST/FIELD`.
DATA_FIELDS = ("user_data", "vendor_data", "network_data", "meta_data")

_OTHER = re.compile(r"[^A-Za-z0-9-]")
# OpenTofu's names begin with a letter or an underscore.
_ADDED = re.compile(r"_(?![A-Za-z_])")
_DATA = re.compile(rf".+_(?:{'|'.join(DATA_FIELDS)})")
_IMAGE_ON_NODE = re.compile(r"image_(.+)_([a-z][a-z0-9-]*)")
_IMAGE = re.compile(r"image_(.+)")
_SPELLED_OUT = re.compile(r".*_x[0-9a-f]+")


def label(key: str) -> str:
    """Return the name of a resource for a key: `web_user_data` for `web/user_data`.

    Every character that is no letter, digit or hyphen becomes an underscore. Of all the keys that share a
    name then, the most usual one has it. The others get the characters that they lost at their end:
    `debian-12` and `debian_12` are names as they are, and `debian.12` is `debian_12_x2e`, with the number of
    the dot.
    """
    owner, _, field = key.rpartition("/")
    if owner and field in DATA_FIELDS:
        return f"{label(owner)}_{field}"
    name = _OTHER.sub("_", key)
    if not name or name[0].isdigit() or name[0] == "-":
        name = f"_{name}"
    if _usual_key(name) == key and not _SPELLED_OUT.fullmatch(name):
        return name
    lost = "".join(_OTHER.findall(key))
    if key[0].isascii() and key[0].isalpha() and len(set(lost)) == 1:
        # One stands for all. No underscore was added before a letter, so their number is plain.
        lost = lost[0]
    return f"{name}_x{lost.encode('utf-8', 'surrogatepass').hex()}"


def key_of(name: str) -> str:
    """Return the key that a name was made from, or the name itself where that cannot be told."""
    found = _SPELLED_OUT.fullmatch(name)
    if found is None:
        return name
    base, _, lost = name.rpartition("_x")
    try:
        characters = bytes.fromhex(lost).decode()
    except ValueError:
        return name
    parts = base.split("_")
    if len(characters) == 1:
        key = characters.join(parts)
    else:
        key = "".join(part + between for part, between in zip(parts, [*characters, ""], strict=False))
    return key if label(key) == name else name


def _usual_key(name: str) -> str | None:
    """Return the key that has a name without more, if that is not the one of cloud-init data."""
    if _DATA.fullmatch(name):
        return None
    name = name[1:] if _ADDED.match(name) else name
    if (found := _IMAGE_ON_NODE.fullmatch(name)) is not None:
        return f"image/{found[1]}@{found[2]}"
    if (found := _IMAGE.fullmatch(name)) is not None:
        return f"image/{found[1]}"
    return name


def address(kind: str, key: str) -> str:
    """Return the address of a resource."""
    return f"{kind}.{label(key)}"
