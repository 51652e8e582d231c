"""Programs that change the machine's kernel or boot loader: noted, or refused, never done."""

from __future__ import annotations

import os
import sys

__all__ = ["run"]


def run(name: str, words: list[str]) -> int:
    """Answer as a guest would in which there is nothing to do."""
    if name == "mount" and not [word for word in words if not word.startswith("-")]:
        with open("/proc/mounts", encoding="utf-8") as stream:
            for line in stream:
                device, place, kind, options = line.split()[:4]
                print(f"{device} on {place} type {kind} ({options})")
        return 0
    if name in ("mount", "umount"):
        sys.stderr.write(f"{name}: a guest of the lab has no file systems to mount: permission denied.\n")
        return 32
    if name == "sysctl":
        return _sysctl(words)
    if name == "ufw" and words[:1] == ["status"]:
        print("Status: inactive")
    return 0


def _sysctl(words: list[str]) -> int:
    quiet = "-n" in words
    for word in words:
        if word.startswith("-"):
            continue
        key, equals, value = word.partition("=")
        if equals:
            print(value.strip() if quiet else f"{key.strip()} = {value.strip()}")
            continue
        path = f"/proc/sys/{key.replace('.', '/')}"
        if not os.path.isfile(path):
            sys.stderr.write(f"sysctl: cannot stat {path}: No such file or directory\n")
            return 255
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read().strip()
        print(text if quiet else f"{key} = {text}")
    return 0
