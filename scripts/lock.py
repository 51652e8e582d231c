"""Compile requirements.lock from pyproject.toml: hashes for every platform, no index address.

Needs `uv`, which is fetched into a throw-away environment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write the lock file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "uv"], check=True)
        options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--extra", "dev"]
        quiet = ["--quiet", "--no-header", "--no-emit-index-url"]
        compile_lock = [f"{folder}/bin/uv", "pip", "compile", *quiet, *options]
        subprocess.run([*compile_lock, "pyproject.toml", "-o", "requirements.lock"], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
