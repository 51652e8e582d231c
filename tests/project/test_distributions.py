"""What a release publishes: the same bytes from the same sources, and in them what belongs there."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from scripts.release import build, locked, write_requirements, write_sums
from scripts.version import find_version
from tests.support.sources import copy_sources

from stackyard.base.extras import EXTRAS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both twice, from sources in two places, of which one has been used."""
    first, second = (copy_sources(tmp_path_factory.mktemp("sources") / name) for name in ("a", "elsewhere"))
    (second / "src" / "stackyard" / "__pycache__").mkdir()
    (second / "src" / "stackyard" / "__pycache__" / "odd.cpython-311.pyc").write_bytes(b"x")
    (second / "notes.txt").write_text("not for others")
    build(first, first / "dist")
    build(second, second / "dist")
    found = {path.name: path for path in (first / "dist").iterdir()}
    assert found.keys() == {path.name for path in (second / "dist").iterdir()}
    for name, path in found.items():
        assert path.read_bytes() == (second / "dist" / name).read_bytes(), name
    return found


def test_the_same_sources_give_the_same_bytes(built: dict[str, Path]) -> None:
    assert sorted(built) == ["stackyard-0.1.0.dev0-py3-none-any.whl", "stackyard-0.1.0.dev0.tar.gz"]


def test_the_wheel_has_every_source_its_data_and_its_licence_and_no_more(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["stackyard-0.1.0.dev0-py3-none-any.whl"]) as wheel:
        names = set(wheel.namelist())
        version = wheel.read("stackyard/_version.py").decode()
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = {name.removeprefix("src/") for name in listed.stdout.split()} | {"stackyard/_version.py"}
    info = "stackyard-0.1.0.dev0.dist-info"
    about = {f"{info}/{name}" for name in "METADATA WHEEL entry_points.txt licenses/LICENSE RECORD".split()}
    assert {name for name in names if (ROOT / "src" / name).is_file()} - about == names - about
    assert names - about >= {name for name in sources if not name.endswith("ruff.toml")}
    assert {"stackyard/py.typed", "pvelab/py.typed"} <= names
    assert '__version__ = "0.1.0.dev0"' in version


def test_the_source_distribution_has_what_a_build_needs_and_builds_the_same_wheel(
    built: dict[str, Path], tmp_path: Path
) -> None:
    archive = built["stackyard-0.1.0.dev0.tar.gz"]
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {name for name in names if not name.startswith("src/")} == {
        "PKG-INFO",
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "scripts/version.py",
    }
    assert not [name for name in names if name.endswith((".pyc", ".sqlite")) or "/tests/" in name]
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tmp_path / "stackyard-0.1.0.dev0", check=True, capture_output=True)
    wheel = "stackyard-0.1.0.dev0-py3-none-any.whl"
    with zipfile.ZipFile(built[wheel]) as one, zipfile.ZipFile(tmp_path / "dist" / wheel) as other:
        assert one.namelist() == other.namelist()
        assert all(one.read(name) == other.read(name) for name in one.namelist())


def test_the_version_comes_from_the_tag(tmp_path: Path) -> None:
    assert find_version(tmp_path) == "0.1.0.dev0"

    def git(*words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-qm", "one")
    assert re.fullmatch(r"0\.1\.0\.dev1\+g[0-9a-f]{7,}", find_version(tmp_path))
    git("tag", "not-a-version")
    git("tag", "v1.2.3rc1")
    assert find_version(tmp_path) == "1.2.3rc1"
    (tmp_path / "file").write_text("2")
    assert re.fullmatch(r"1\.2\.3rc1\.dev0\+g[0-9a-f]+\.dirty", find_version(tmp_path))
    git("commit", "-qam", "two")
    git("tag", "v1.2.3")
    assert find_version(tmp_path) == "1.2.3"
    git("commit", "-qm", "three", "--allow-empty")
    assert re.fullmatch(r"1\.2\.4\.dev1\+g[0-9a-f]+", find_version(tmp_path))
    # Nearer, and no versions.
    for name in ("v1.2.3.4", "v2.0.0-draft"):
        git("tag", name)
    assert re.fullmatch(r"1\.2\.4\.dev1\+g[0-9a-f]+", find_version(tmp_path))
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: stackyard\nVersion: 9.9.9\n\nText\n")
    assert find_version(tmp_path) == "9.9.9"


def test_the_requirements_of_a_release_are_pinned_with_hashes(tmp_path: Path) -> None:
    write_requirements(ROOT, tmp_path)
    write_sums(tmp_path)
    names = {f"requirements{suffix}.txt" for suffix in ("", "-all", *(f"-{name}" for name in EXTRAS))}
    assert {path.name for path in tmp_path.iterdir()} == names | {"SHA256SUMS"}
    pinned = {
        name: set(re.findall(r"^([a-z0-9.-]+)==", (tmp_path / name).read_text(), re.MULTILINE))
        for name in names
    }
    assert {"aiohttp", "multidict", "pydantic-core", "pycparser"} <= pinned["requirements.txt"]
    assert not pinned["requirements.txt"] & {"boto3", "grpcio", "jsonschema-rs", "psycopg", "pytest"}
    assert {"boto3", "urllib3"} <= pinned["requirements-s3.txt"] <= pinned["requirements-all.txt"]
    for name in names:
        for block in re.split(r"\n(?=[a-z])", (tmp_path / name).read_text()):
            assert "--hash=sha256:" in block
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_a_lock_gives_what_a_requirement_needs_and_what_that_needs() -> None:
    lock = (
        "a==1 \\\n    --hash=sha256:1\n    # via stackyard (pyproject.toml)\n"
        "b==2 \\\n    --hash=sha256:2\n    # via\n    #   a\n    #   d\n"
        "c==3 ; python_version < '3.12' \\\n    --hash=sha256:3\n    # via b\n"
        "d==4 \\\n    --hash=sha256:4\n    # via stackyard (pyproject.toml)\n"
    )
    assert locked(lock, ["a[x]>=1"]) == {
        "a": "a==1 \\\n    --hash=sha256:1\n",
        "b": "b==2 \\\n    --hash=sha256:2\n",
        "c": "c==3 ; python_version < '3.12' \\\n    --hash=sha256:3\n",
    }
