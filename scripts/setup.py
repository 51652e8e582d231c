"""Make the virtual environment in .venv from requirements.lock, with the standard library alone.

Quick when nothing changed. Says what it waits for, and what to do when it cannot go on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "stackyard-setup"
# Not the Python of the environment itself, where that is activated: it is about to be removed.
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable
# A wish of the user about other installs that pip refuses in an environment.
ENVIRONMENT = {**os.environ, "PIP_USER": "0"}


def main() -> int:
    """Make the environment if it is missing or out of date."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        return fail(f"Python {found} is too old: stackyard needs 3.11 or newer (make PYTHON=python3.12 ...).")
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return 0
    began = time.monotonic()
    say("setup: making .venv and installing what requirements.lock names (a minute on a slow line) ...")
    try:
        install()
        STAMP.write_text(wanted)
    except subprocess.CalledProcessError as err:
        return fail(
            f"`{' '.join(map(str, err.cmd))}` failed with status {err.returncode}; its output is above."
        )
    except OSError as err:
        return fail(f"{err}; check that {ROOT} is yours to write in.")
    except KeyboardInterrupt:
        return fail("stopped; run it again to go on.")
    say(f"setup: done in {time.monotonic() - began:.0f} s")
    return 0


def fingerprint() -> str:
    """Return what the environment was made from: the Python, the place, the lock and the project itself."""
    import tomllib  # lazy: a Python that is too old has none, and is told so first

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # How the tools are set up is in the same file and changes nothing that is installed.
    facts = repr([settings["project"], settings["build-system"]]).encode()
    made_from = hashlib.sha256((ROOT / "requirements.lock").read_bytes() + facts)
    return f"{sys.version}\n{ROOT}\n{made_from.hexdigest()}\n"


def install() -> None:
    """Make the environment again and install the locked packages, then the project itself."""
    if VENV.is_dir():
        shutil.rmtree(VENV)
    else:
        VENV.unlink(missing_ok=True)
    make_venv()
    pip: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"])
    run([*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT])
    # What pip copies it compiles too; of an editable install the first command would have to do it.
    run([PYTHON, "-m", "compileall", "-q", ROOT / "src"])


def make_venv() -> None:
    """Make .venv; a Debian without python3-venv can still lend its own pip."""
    made = subprocess.run([BASE_PYTHON, "-m", "venv", VENV], capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    run([BASE_PYTHON, "-m", "venv", "--without-pip", VENV])
    try:
        run([BASE_PYTHON, "-m", "pip", "--python", PYTHON, "install", "--quiet", "pip"])
    except subprocess.CalledProcessError:
        say(made.stdout + made.stderr)
        say("setup: this Python has neither ensurepip nor pip; on Debian: apt install python3-venv")
        raise


def run(argv: Sequence[str | Path]) -> None:
    """Run a program and let it speak for itself."""
    subprocess.run(argv, check=True, env=ENVIRONMENT)


def say(text: str) -> None:
    """Tell the user."""
    sys.stderr.write(text + "\n")


def fail(text: str) -> int:
    """Tell the user what went wrong."""
    say(f"setup: {text}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
