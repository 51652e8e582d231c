"""The log of cloud-init: what it did, in the words of the real one, and what its commands said."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time

__all__ = ["LOG", "OUTPUT", "Journal"]

LOG = "/var/log/cloud-init.log"
OUTPUT = "/var/log/cloud-init-output.log"


class Journal:
    """Writes the log and counts what went wrong."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        for path in (LOG, OUTPUT):
            with contextlib.suppress(OSError), open(path, "a", encoding="utf-8"):
                os.chmod(path, 0o640)

    def debug(self, where: str, text: str) -> None:
        """Note something."""
        self._write("DEBUG", where, text)

    def info(self, where: str, text: str) -> None:
        """Note something that people look for."""
        self._write("INFO", where, text)

    def warn(self, where: str, text: str) -> None:
        """Note something that went wrong; the status says so at the end."""
        self.errors.append(text)
        self._write("WARNING", where, text)
        self.say(f"{_now()} - {where}[WARNING]: {text}")

    def say(self, text: str) -> None:
        """Write what people read."""
        with contextlib.suppress(OSError), open(OUTPUT, "a", encoding="utf-8") as stream:
            stream.write(f"{text}\n")

    def run(self, command: object, *, shell: str = "/bin/sh") -> int:
        """Run a command: a list of words, or a line for a shell; what it says goes to the output log."""
        argv = [str(word) for word in command] if isinstance(command, list) else [shell, "-c", str(command)]
        with open(OUTPUT, "ab") as stream:
            try:
                done = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False, cwd="/"
                )
            except OSError as err:
                stream.write(f"{argv[0]}: {err.strerror}\n".encode())
                return 127
        return done.returncode

    def _write(self, level: str, where: str, text: str) -> None:
        with contextlib.suppress(OSError), open(LOG, "a", encoding="utf-8") as stream:
            stream.write(f"{_now()} - {where}[{level}]: {text}\n")


def _now() -> str:
    seconds = time.time()
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f",{int(seconds * 1000) % 1000:03d}"
