"""Packages of Debian on a machine: installed without questions, behind the holder of the lock."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.scenario.context import Context

__all__ = ["APT_GET", "install_packages", "refresh_packages"]

# The lock is waited for: a machine that has just started updates itself. Files that someone changed stay.
APT_GET = (
    "DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 "
    "-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
)
_INSTALL_S = 1200.0
_REFRESH_S = 600.0


async def refresh_packages(context: Context) -> None:
    """Read the lists of packages again.

    Raises:
        CommandFailedError: A repository does not answer.
    """
    await context.sh(f"{APT_GET} update", timeout_s=_REFRESH_S)


async def install_packages(context: Context, names: Sequence[str]) -> None:
    """Install packages that are not there.

    Raises:
        CommandFailedError: One cannot be installed.
    """
    if names:
        await context.sh(f"{APT_GET} install {shlex.join(names)}", timeout_s=_INSTALL_S)
