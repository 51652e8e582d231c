"""Talos' own code as a judge of what stackyard makes for it: talosctl, and validators of several releases."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.judges import find_judge
from tests.support.programs import LONG_S

__all__ = ["TALOSCTL_RELEASE", "Talosctl", "find_talosctl", "find_validator", "run_validator"]

# The release that STACKYARD_TEST_TALOSCTL has.
TALOSCTL_RELEASE = 12


@dataclass(frozen=True)
class Talosctl:
    """A talosctl that runs in a folder of its own."""

    program: Path
    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of it to its end."""
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )

    def validate(self, text: str, mode: str) -> str:
        """Return what it objects to in a configuration; nothing if it is valid."""
        (self.folder / "config.yaml").write_text(text)
        done = self.run("validate", "--mode", mode, "--config", "config.yaml", "--strict")
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def patch(self, text: str, patch: str) -> str:
        """Return a configuration with a patch applied."""
        (self.folder / "config.yaml").write_text(text)
        (self.folder / "patch.yaml").write_text(patch)
        done = self.run("machineconfig", "patch", "config.yaml", "--patch", "@patch.yaml")
        assert done.returncode == 0, done.stderr
        return done.stdout


def find_talosctl(folder: Path) -> Talosctl:
    """Return the talosctl to test with, or skip the test by name."""
    return Talosctl(find_judge("talosctl"), folder)


def find_validator(minor: int) -> Path:
    """Return the validator of a release, 1.`minor`, or skip the test by name."""
    named = os.environ.get("STACKYARD_TEST_TALOS_VALIDATORS")
    path = Path(named or ".").absolute() / f"talos-validate-1.{minor}"
    if not named or not path.is_file():
        pytest.skip(f"no talos-validate-1.{minor} in a folder that STACKYARD_TEST_TALOS_VALIDATORS names")
    return path


def run_validator(program: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a validator on a configuration."""
    return subprocess.run(
        [str(program), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
