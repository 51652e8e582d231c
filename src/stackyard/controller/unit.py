"""The controller under systemd: its unit, and the word that it is ready."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["notify_ready", "systemd_unit"]


def systemd_unit(argv: Sequence[str], site: Path, *, is_for_user: bool) -> str:
    """Return the unit of a controller.

    Args:
        argv: The program and its arguments.
        site: The folder of the site, which is all that it writes to.
        is_for_user: Whether it is for the user's own systemd.
    """
    hardening = "" if is_for_user else f"ProtectSystem=strict\nReadWritePaths={_quote(str(site))}\n"
    target = "default.target" if is_for_user else "multi-user.target"
    return f"""\
[Unit]
Description=stackyard controller: specs, repositories and state of {_literal(str(site))}
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={" ".join(_quote(word) for word in argv)}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
TimeoutStopSec=5
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
{hardening}
[Install]
WantedBy={target}
"""


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _quote(word: str) -> str:
    """Return a word as systemd reads it back."""
    if word and all(letter.isalnum() or letter in "/._-=:,@+" for letter in word):
        return word
    escaped = _literal(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def notify_ready() -> None:
    """Tell systemd, where it has started us, that clients can connect."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A name in the abstract space begins with a zero byte, which the variable spells as an at sign.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.sendto(b"READY=1", name)
