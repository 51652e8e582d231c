from __future__ import annotations

import asyncio
import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.engine.tools.goproxy import GOMOD, GREETING, MAIN, TINY, GoProxy

from stackyard.base import events
from stackyard.engine.tools.gobuild import GoModule, write_module_files
from stackyard.engine.tools.golang import GoSource
from stackyard.engine.tools.methods import ToolBuildError
from stackyard.engine.version import Version

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="there is no go on PATH")

VERSION = Version(1, 12, 6)


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoProxy:
    """Give an empty proxy that Go takes everything from."""
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path / 'proxy'}")
    monkeypatch.setenv("GOSUMDB", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    # Go's own module cache is read-only, which the clean-up of the test would trip over.
    monkeypatch.setenv("GOFLAGS", "-modcacherw")
    # A Go that is too old must say so here and not fetch another one, nor may pip.
    monkeypatch.setenv("GOTOOLCHAIN", "local")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return GoProxy(tmp_path / "proxy")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def way(files: dict[str, str] | None = None) -> GoModule:
    """Return the builder of the small program, with or without module files for it."""
    version = str(VERSION) if files else "0.0.0"
    return GoModule(program=TINY, shipped_version=version, shipped_files=files or {})


def module_files(folder: Path) -> dict[str, str]:
    """Return the module files that the update script would ship for the small program."""
    folder.mkdir()
    with events.step(events.ignore, "test", "Test") as step:
        asyncio.run(
            write_module_files(
                TINY, VERSION, folder=folder, scratch=folder.parent, step=step, go_source=GoSource()
            )
        )
    return {name: (folder / name).read_text() for name in ("go.mod", "go.sum")}


def build(module: GoModule, work: Path, emit: events.Emit = events.ignore) -> str:
    program = asyncio.run(module.provide(VERSION, work, emit))
    return subprocess.run([program], capture_output=True, text=True, check=True).stderr


def test_a_version_without_shipped_files_is_built_with_the_lines_of_its_own_gomod(
    proxy: GoProxy, work: Path
) -> None:
    proxy.add_tiny()
    assert build(way(), work) == "the fork"


def test_shipped_files_build_the_same_program(proxy: GoProxy, work: Path, tmp_path: Path) -> None:
    proxy.add_tiny()
    files = module_files(tmp_path / "files")
    assert "replace example.test/greeting v1.0.0 => example.test/fork v1.0.1" in files["go.mod"]
    assert build(way(files), work) == "the fork"


def test_shipped_sums_refuse_a_module_that_is_not_the_one_they_know(
    proxy: GoProxy, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.add_tiny()
    files = module_files(tmp_path / "files")
    evil = {"go.mod": "module example.test/fork\n", "evil.go": "package greeting\n"}
    proxy.add("example.test/fork", "v1.0.1", evil)
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "other-modules"))
    with pytest.raises(ToolBuildError, match="checksum mismatch"):
        build(way(files), work)
    assert not (work / "tofu").exists()


def test_sums_that_are_missing_are_not_made_up(proxy: GoProxy, work: Path, tmp_path: Path) -> None:
    proxy.add_tiny()
    files = module_files(tmp_path / "files") | {"go.sum": ""}
    with pytest.raises(ToolBuildError, match=r"missing go\.sum entry"):
        build(way(files), work)


def test_progress_counts_packages_up_to_their_number(proxy: GoProxy, work: Path) -> None:
    proxy.add_tiny()
    seen: list[events.Event] = []
    build(way(), work, seen.append)
    steps = [event for event in seen if isinstance(event, events.StepProgressed)]
    assert {step.unit for step in steps} == {"modules downloaded", "packages compiled"}
    compiled = [step for step in steps if step.unit == "packages compiled"]
    assert compiled[-1].done == compiled[-1].total
    assert compiled[-1].total is not None
    assert compiled[-1].total >= 2


def test_a_version_that_does_not_exist_is_a_reason_that_names_it(proxy: GoProxy, work: Path) -> None:
    proxy.add_tiny("v1.11.0")
    with pytest.raises(ToolBuildError, match=r"example\.test/tiny@v1\.12\.6 cannot be downloaded"):
        build(way(), work)


def test_a_program_that_does_not_compile_is_a_reason_with_the_compilers_words(
    proxy: GoProxy, work: Path
) -> None:
    proxy.add_tiny()
    files = {"go.mod": GOMOD % "1.24", "cmd/tofu/main.go": "package main\n\nfunc main() { nonsense() }\n"}
    proxy.add("example.test/tiny", "v1.12.6", files)
    with pytest.raises(ToolBuildError, match="undefined: nonsense"):
        build(way(), work)


def test_a_folder_of_the_repository_is_the_module_that_is_released_from_it(
    proxy: GoProxy, work: Path
) -> None:
    part = "example.test/tiny/pkg/greeting"
    gomod = (
        f"module example.test/tiny\n\ngo 1.24\n\nrequire {part} v1.12.5\n\nreplace {part} => ./pkg/greeting\n"
    )
    code = MAIN.replace("example.test/greeting", part)
    proxy.add("example.test/tiny", "v1.12.6", {"go.mod": gomod, "cmd/tofu/main.go": code})
    for version, forked in (("v1.12.5", "false"), ("v1.12.6", "true")):
        proxy.add(part, version, {"go.mod": f"module {part}\n", "greeting.go": GREETING % forked})
    assert build(way(), work) == "the fork"


def test_the_sums_of_the_module_itself_hold_for_what_it_needs(proxy: GoProxy, work: Path) -> None:
    proxy.add_tiny()
    wrong = f"example.test/fork v1.0.1 h1:{'A' * 43}=\n"
    files = {"go.mod": GOMOD % "1.24", "cmd/tofu/main.go": MAIN, "go.sum": wrong}
    proxy.add("example.test/tiny", "v1.12.6", files)
    with pytest.raises(ToolBuildError, match="checksum mismatch"):
        build(way(), work)


def test_a_module_that_replaces_by_a_folder_cannot_be_built_and_says_so(proxy: GoProxy, work: Path) -> None:
    proxy.add_tiny(
        gomod="module example.test/tiny\n\ngo 1.24\n\nrequire example.test/greeting v0.0.0\n\n"
        "replace example.test/greeting => ./greeting\n"
    )
    with pytest.raises(ToolBuildError, match=r"replaces example\.test/greeting by the folder \./greeting"):
        build(way(), work)


def test_a_module_with_staged_folders_is_built_with_the_modules_released_from_them(
    proxy: GoProxy, work: Path
) -> None:
    proxy.add_tiny(
        gomod="module example.test/tiny\n\ngo 1.24\n\nrequire example.test/greeting v0.0.0\n\n"
        "replace example.test/greeting => ./staging/greeting\n"
    )
    files = {"go.mod": "module example.test/greeting\n", "greeting.go": GREETING % "true"}
    proxy.add("example.test/greeting", "v0.12.6", files)
    program = dataclasses.replace(TINY, staged_version="v0.{minor}.{patch}")
    assert build(dataclasses.replace(way(), program=program), work) == "the fork"


def test_a_module_that_needs_a_newer_go_than_there_is_names_both(proxy: GoProxy, work: Path) -> None:
    proxy.add_tiny(gomod=GOMOD % "1.99.0")
    with pytest.raises(
        ToolBuildError, match=r"Go 1\.99\.0 or newer is needed, the Go on PATH is 1\."
    ) as caught:
        build(way(), work)
    assert "PyPI has none" in caught.value.detail


def test_a_proxy_that_cannot_be_reached_is_a_reason_without_its_password(
    proxy: GoProxy, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "http://anna:hunter22@127.0.0.1:1")
    with pytest.raises(ToolBuildError, match="cannot be downloaded") as caught:
        build(way(), work)
    assert "hunter22" not in caught.value.detail


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler on PATH")
def test_tags_and_parts_in_c_are_built_as_the_makers_do(proxy: GoProxy, work: Path) -> None:
    answer = '// static int answer() { return 42; }\nimport "C"\n'
    code = f"package main\n\n{answer}\nfunc main() {{ print(C.answer(), said) }}\n"
    files = {
        "go.mod": "module example.test/tiny\n\ngo 1.24\n",
        "cmd/tofu/main.go": code,
        "cmd/tofu/with.go": '//go:build sqlite && unlock\n\npackage main\n\nconst said = " with"\n',
        "cmd/tofu/without.go": '//go:build !(sqlite && unlock)\n\npackage main\n\nconst said = " without"\n',
    }
    proxy.add("example.test/tiny", "v1.12.6", files)
    program = dataclasses.replace(TINY, tags=("sqlite", "unlock"), uses_c=True)
    module = GoModule(program=program, shipped_version="0.0.0", shipped_files={})
    assert build(module, work) == "42 with"
