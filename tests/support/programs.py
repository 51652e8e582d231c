"""Small real programs that stand in for large ones."""

from __future__ import annotations

from pathlib import Path

# What never ends by itself and does not need PATH.
HANGS = "exec /bin/sleep 600"
# Long enough for a loaded machine: no test here waits for it to pass.
LONG_S = 60.0


def engine_script(version: str, *, terraform: bool = False) -> str:
    """Return what answers `version -json` as OpenTofu or Terraform does."""
    outdated = ', "terraform_outdated": false' if terraform else ""
    return f"""echo '{{"terraform_version": "{version}", "platform": "linux_amd64"{outdated}}}'"""


def write_program(path: Path, script: str) -> Path:
    """Write a shell script that can be run, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def managed_copy(cache: Path, version: str, script: str | None = None) -> Path:
    """Put a managed copy of OpenTofu in place."""
    return write_program(cache / "tools" / "tofu" / version / "tofu", script or engine_script(version))
