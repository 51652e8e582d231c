"""This machine, where no file of the site names it: what `pve-setup --local` would find."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.base.diagnostics import Diagnostics
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Observation

if TYPE_CHECKING:
    from stackyard.operator.preflight.subject import PreflightSubject

__all__ = ["check_here"]

_PARAMETERS = ("kvm_intel", "kvm_amd")
_ON = frozenset(("Y", "1"))
_SUDO_S = 10.0


async def check_here(subject: PreflightSubject) -> Observation:
    """Look at the system, Proxmox VE, virtualisation, and whether this user can become root."""
    found = Diagnostics()
    proxmox = "Proxmox VE" if shutil.which("pveversion") else "no Proxmox VE"
    nested = _read_nesting()
    if not await _is_root():
        found.add(kinds.LOCAL_ROOT, "This user is not root, and `sudo -n true` does not work.")
    if nested == "off":
        found.add(kinds.NESTED_UNKNOWN, "kvm of this machine is loaded without `nested`.")
    text = f"{subject.host.name}, which no file of the site names: {_system()}, {proxmox}, nested {nested}"
    return Observation(text=text, findings=tuple(found))


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown system")
    except OSError:
        return "unknown system"


def _read_nesting() -> str:
    places = (Path(f"/sys/module/{name}/parameters/nested") for name in _PARAMETERS)
    said = {path.read_text().strip() for path in places if path.is_file()}
    return "unknown" if not said else "on" if said & _ON else "off"


async def _is_root() -> bool:
    if os.geteuid() == 0:
        return True
    sudo = shutil.which("sudo")
    if sudo is None:
        return False
    command = process.Command(argv=(sudo, "-n", "true"), env=process.environment(), timeout_s=_SUDO_S)
    try:
        return (await process.run(command, check=False)).returncode == 0
    except process.ProcessTimeoutError:
        return False
