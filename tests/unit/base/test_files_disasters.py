"""Files survive what happens to their writer: a kill, a full disk, a folder without permission."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.processes import DROP_PRIVILEGES, folder_for_anybody, run_python

# One process that forks writers and kills each at some moment: at once, while it writes, syncs or renames.
KILLED_WRITERS = """
import os, random, signal, sys, time
from pathlib import Path
from stackyard.base.files import replace_file

folder = Path(sys.argv[1])
path = folder / "state.json"
chosen = random.Random(7)
versions = [bytes([letter]) * (200_000 + letter) for letter in b"abcdef"]
replace_file(path, versions[0])
seen = set()
for _ in range(40):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        while True:
            for data in versions:
                os.write(writing, b"!")
                replace_file(path, data)
    for _ in range(chosen.randint(1, 4)):
        os.read(reading, 1)
    time.sleep(chosen.uniform(0, 0.005))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reading)
    os.close(writing)
    data = path.read_bytes()
    assert data in versions, (len(data), data[:10])
    assert path.stat().st_mode & 0o777 == 0o600
    seen.add(data[:1])
assert len(seen) > 1, "the writers never got to write"
"""


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    run_python(KILLED_WRITERS, str(tmp_path))
    debris = [path for path in tmp_path.iterdir() if path.name != "state.json"]
    # A name that nothing looks for: hidden, without the suffix, and for the owner alone.
    assert [path for path in debris if not path.name.startswith(".state.json.")] == []
    assert list(tmp_path.glob("*.json")) == [tmp_path / "state.json"]
    assert {path.stat().st_mode & 0o777 for path in debris} <= {0o600}


TOO_LARGE = """
import resource, sys
from pathlib import Path
from stackyard.base.errors import FileError
from stackyard.base.files import replace_file

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
path = Path(sys.argv[1])
try:
    replace_file(path, b"new" * 4096)
except FileError as err:
    print(err.detail)
"""


def test_a_file_that_grows_too_large_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")
    assert run_python(TOO_LARGE, str(path)) == f"Cannot write {path}: File too large.\n"
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["state.json"]


FULL_DISK = """
import os, sys
from pathlib import Path
from stackyard.base.errors import FileError
from stackyard.base.files import read_text, replace_file

path = Path(sys.argv[1]) / "state.json"
replace_file(path, b"old")
try:
    replace_file(path, b"new" * 100_000)
except FileError as err:
    print(err.detail)
print(read_text(path), os.listdir(path.parent))
"""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare on PATH to mount a small disk with")
    own_disk = [unshare, "--user", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o size=64k none {tmp_path}"
    tried = subprocess.run([*own_disk, "sh", "-c", mount], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this system lets nobody mount a small disk: {tried.stderr.strip()}")
    script = f'{mount} && exec "$@"'
    python = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(
        [*own_disk, "sh", "-c", script, "sh", *python], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"Cannot write {tmp_path / 'state.json'}: No space left on device.",
        "old ['state.json']",
    ]


WITHOUT_PERMISSION = f"""
import os, sys
from pathlib import Path
from stackyard.base.errors import FileError
from stackyard.base.files import read_text, replace_file
{DROP_PRIVILEGES}
folder = Path(sys.argv[1])

def tried(doing, *what):
    try:
        doing(*what)
    except FileError as err:
        print(err.detail.replace(str(folder), ""))

tried(replace_file, folder / "unwritable" / "file", b"new")
tried(replace_file, folder / "unlistable" / "file", b"new")
tried(replace_file, folder / "closed" / "file", b"new")
tried(read_text, folder / "closed" / "file")
tried(read_text, folder / "unreadable")
"""


def test_without_permission_nothing_is_changed_and_the_error_says_so() -> None:
    with folder_for_anybody() as folder:
        for name, mode in [("unwritable", 0o555), ("unlistable", 0o333), ("closed", 0o000)]:
            (folder / name).mkdir()
            (folder / name / "file").write_bytes(b"old")
            (folder / name).chmod(mode)
        (folder / "unreadable").touch(mode=0o000)
        assert run_python(WITHOUT_PERMISSION, str(folder)).splitlines() == [
            "Cannot write /unwritable/file: Permission denied.",
            "Cannot write /unlistable/file: Permission denied.",
            "Cannot write /closed/file: Permission denied.",
            "Cannot read /closed/file: Permission denied.",
            "Cannot read /unreadable: Permission denied.",
        ]
        for name in ("unwritable", "unlistable", "closed"):
            (folder / name).chmod(0o700)
            assert os.listdir(folder / name) == ["file"]
            assert (folder / name / "file").read_bytes() == b"old"
