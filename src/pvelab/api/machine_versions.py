"""Which versions of machine types a node has: those of its QEMU, with the revisions of Proxmox."""

from __future__ import annotations

__all__ = ["BOARDS", "QEMU_VERSION", "REVISIONS", "VERSIONS", "is_machine", "text_of"]

QEMU_VERSION = "10.1.2"
# What QEMU calls a board, with the word of Proxmox.
BOARDS = {"pc-i440fx": "i440fx", "pc-q35": "q35", "virt": "virt"}
# What Proxmox has changed since a version of QEMU came out, counted; none where a version is not listed.
REVISIONS = {(4, 1): 2, (9, 2): 1, (10, 0): 1, (11, 0): 2}
# Which versions there have been; older ones have gone from QEMU.
_MINORS = {2: range(6, 13), 3: range(2), 4: range(3), **{major: range(3) for major in range(5, 10)}}
_INSTALLED = tuple(int(part) for part in QEMU_VERSION.split(".")[:2])
VERSIONS = (
    *((major, minor) for major, minors in _MINORS.items() for minor in minors),
    *((_INSTALLED[0], minor) for minor in range(_INSTALLED[1] + 1)),
)
# The one that has a third number.
_PATCHED = "pc-q35-4.0.1"


def is_machine(name: str) -> bool:
    """Return whether QEMU knows a board by its name and version, which is without a revision."""
    return name == _PATCHED or any(
        name == f"{board}-{text_of(version)}" for board in BOARDS for version in VERSIONS
    )


def text_of(version: tuple[int, int]) -> str:
    """Return a version as names have it."""
    return f"{version[0]}.{version[1]}"
