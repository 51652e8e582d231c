"""Compile the lock files: hashes for every platform, no index address.

requirements.lock has what pyproject.toml names, scripts/site-requirements.lock what `make site` needs.

Needs `uv`, which is fetched into a throw-away environment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write the lock files."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "uv"], check=True)
        options = ["--universal", "--python-version", "3.11", "--generate-hashes"]
        quiet = ["--quiet", "--no-header", "--no-emit-index-url"]
        compile_lock = [f"{folder}/bin/uv", "pip", "compile", *quiet, *options]
        extras = ["--extra", "dev", "--extra", "all"]
        for source in ([*extras, "pyproject.toml"], ["scripts/site-requirements.in"]):
            lock = "requirements.lock" if "pyproject.toml" in source else "scripts/site-requirements.lock"
            subprocess.run([*compile_lock, *source, "-o", lock], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
