"""Programs are started where stackyard is bytecode without sources, as on an inner host."""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "stackyard"
SCRIPT = """
import asyncio
from stackyard.base import process
done = asyncio.run(process.run(process.Command(argv=("echo", "started"), env={"PATH": "/usr/bin:/bin"})))
print(process.__file__, done.stdout)
"""


def test_a_program_is_started_where_there_are_no_sources(tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "base", tmp_path / "stackyard" / "base")
    shutil.copyfile(SOURCE / "__init__.py", tmp_path / "stackyard" / "__init__.py")
    assert compileall.compile_dir(tmp_path, quiet=2, legacy=True)
    for source in tmp_path.rglob("*.py"):
        source.unlink()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout
    assert "started" in done.stdout
