"""QEMU on this machine: whether it is there, and whether the processor helps it.

Whether KVM works cannot be read off a file: a machine may have /dev/kvm and still not run guests. So a guest
of a few instructions is run, which takes a tenth of a second; where it does not come to its end, QEMU
emulates the processor (TCG), which takes about ten times as long for everything.
"""

from __future__ import annotations

import enum
import shutil
import tempfile
from pathlib import Path

from stackyard.base import process
from stackyard.base.errors import StackyardError

__all__ = ["EMULATOR", "IMAGES", "Accelerator", "QemuMissingError", "find_accelerator", "require_qemu"]

EMULATOR = "qemu-system-x86_64"
IMAGES = "qemu-img"

_PACKAGES = {EMULATOR: "qemu-system-x86", IMAGES: "qemu-utils"}
_PROBE_TIMEOUT_S = 10.0
_PROBE_PORT = 0xF4
_ROM_SIZE = 64 * 1024
_RESET_VECTOR = 0xFFF0
# mov al, 0x10; out 0xf4, al; hlt; jmp $-1. The device at that port ends QEMU with status 2 * 0x10 + 1.
_PROBE = bytes((0xB0, 0x10, 0xE6, _PROBE_PORT, 0xF4, 0xEB, 0xFD))
_PROBE_STATUS = 33


class Accelerator(enum.StrEnum):
    """How QEMU runs the instructions of a guest."""

    KVM = "kvm"
    TCG = "tcg"


class QemuMissingError(StackyardError):
    """Guests are to be real ones, and the programs that run them are not on this machine."""

    code = "E-LAB-QEMU"
    summary = "QEMU is not installed"
    default_remedy = "Install it, or start the lab without `--guests qemu`."


def require_qemu() -> None:
    """Refuse to run real guests where QEMU is not there.

    Raises:
        QemuMissingError: It is not; the packages of Debian and Ubuntu that have it are named.
    """
    missing = [name for name in _PACKAGES if shutil.which(name) is None]
    if missing:
        packages = " ".join(_PACKAGES[name] for name in missing)
        raise QemuMissingError(
            f"{' and '.join(f'`{name}`' for name in missing)} not found, which `--guests qemu` needs.",
            remedy=f"Install it (Debian, Ubuntu: apt-get install {packages}), or leave out `--guests qemu`.",
        )


async def find_accelerator() -> Accelerator:
    """Return KVM if a guest runs with it to its end, TCG otherwise."""
    if not _has_kvm():
        return Accelerator.TCG
    rom = bytearray(_ROM_SIZE)
    rom[_RESET_VECTOR : _RESET_VECTOR + len(_PROBE)] = _PROBE
    with tempfile.NamedTemporaryFile(prefix="stackyard-probe-", suffix=".rom") as file:
        file.write(rom)
        file.flush()
        command = process.Command(
            argv=(
                *(EMULATOR, "-accel", "kvm", "-cpu", "host", "-m", "16", "-nodefaults", "-display", "none"),
                *("-no-reboot", "-bios", file.name),
                *("-device", f"isa-debug-exit,iobase={_PROBE_PORT},iosize=4"),
            ),
            env=process.environment(),
            timeout_s=_PROBE_TIMEOUT_S,
            grace_s=1.0,
        )
        try:
            done = await process.run(command, check=False)
        except process.ProcessTimeoutError:
            return Accelerator.TCG
    return Accelerator.KVM if done.returncode == _PROBE_STATUS else Accelerator.TCG


def _has_kvm() -> bool:
    return Path("/dev/kvm").exists()
