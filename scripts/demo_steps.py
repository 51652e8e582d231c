"""What the demos share: a folder of their own, commands run in full view, and a summary."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Demo", "DemoFailedError", "play_in_view", "say"]


class DemoFailedError(Exception):
    """A step did not end as it should."""


@dataclass
class Demo:
    """A folder in which a demo runs, and what it has shown.

    Attributes:
        folder: Where everything of the demo is; it is removed at the end.
        home: The folder in which commands run.
        shown: Each step that was shown, and how long it took.
    """

    folder: Path
    home: Path
    shown: list[tuple[str, float]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """Return the environment: the user's, but for everything that would be left behind at home."""
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("STACKYARD_", "SOPS_"))
        }
        if chosen := os.environ.get("STACKYARD_TOFU"):
            kept["STACKYARD_TOFU"] = chosen
        own = {
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return {**kept, **own}

    def run(self, title: str, *words: str, status: int = 0, where: Path | None = None) -> None:
        """Run a command in full view, which has to end with some status."""
        say(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")
        say(f"$ stackyard {shlex.join(words)}")
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "stackyard", *words],
            cwd=where or self.home,
            env=self.environment(),
            check=False,
        )
        if done.returncode != status:
            raise DemoFailedError(
                f"`stackyard {shlex.join(words)}` ended with {done.returncode}, not {status}."
            )
        self.shown.append((title, time.monotonic() - began_s))

    def asked(self, *words: str) -> dict[str, Any]:
        """Run a command out of view and return what it says as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "stackyard", *words, "--json"],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            check=True,
        )
        document: dict[str, Any] = json.loads(done.stdout)
        return document


def play_in_view(name: str, play: Callable[[Demo], None], more: str) -> int:
    """Run a demo in a folder of its own, end its lab, and say what was shown.

    Args:
        name: What the folder of its site or repository is called, below the folder of the demo.
        play: Shows each step.
        more: Where to go on.

    Returns:
        The exit status of the program.
    """
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stackyard-demo-") as folder:
        demo = Demo(Path(folder), Path(folder) / name)
        try:
            play(demo)
        except DemoFailedError as err:
            say(f"\nThe demo failed: {err}")
            return 1
        finally:
            words = ["-m", "stackyard", "lab", "down", "--name", "demo"]
            subprocess.run([sys.executable, *words], env=demo.environment(), capture_output=True, check=False)
    _summarise(demo, time.monotonic() - began_s, more)
    return 0


def _summarise(demo: Demo, took_s: float, more: str) -> None:
    say("\nWhat was shown:")
    for title, step_s in demo.shown:
        say(f"  {title:<52} {step_s:5.1f} s")
    say(f"  {'in all':<52} {took_s:5.1f} s")
    say(f"\n{more}")


def say(text: str) -> None:
    """Print a line at once, so that it stands before what a command prints."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
