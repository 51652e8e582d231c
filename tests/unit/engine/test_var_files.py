"""Variables files that are passed through descriptors, and the engine's messages about them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from tests.support.engine import scripted_engine

from stackyard.base import events, process
from stackyard.base.errors import Location
from stackyard.engine import failures, statefile, tofu
from stackyard.engine.ui import Stream
from stackyard.engine.var_files import OpenVarFiles, open_var_files
from stackyard.engine.version import Flavour
from stackyard.engine.workdir import Workdir
from stackyard.secrets.var_file import PrivateVarFile

CONTENT = b'password = "hunter2-hunter2"\n'
USERS = Path("/srv/stack/secrets.tfvars")
# What the private file is called for the engine that runs.
FIND_NAME = "for word; do case $word in -var-file=/dev/fd/*) name=${word#*=};; esac; done"


def private(content: bytes = CONTENT, lines: tuple[int, ...] = ()) -> PrivateVarFile:
    return PrivateVarFile(path=USERS, content=content, lines=lines)


def workdir(tmp_path: Path, script: str = "true", *, flavour: Flavour = Flavour.TOFU) -> Workdir:
    files = (tmp_path / "a.tfvars", private(), tmp_path / "b.tfvars")
    return Workdir(engine=scripted_engine(tmp_path, script, flavour), folder=tmp_path, var_files=files)


def test_files_keep_their_order_and_a_private_one_is_a_descriptor(tmp_path: Path) -> None:
    with open_var_files(workdir(tmp_path), "plan") as given:
        (descriptor,) = given.descriptors
        assert given.arguments == (
            f"-var-file={tmp_path}/a.tfvars",
            f"-var-file=/dev/fd/{descriptor}",
            f"-var-file={tmp_path}/b.tfvars",
        )
        for _ in range(2):
            assert Path(f"/dev/fd/{descriptor}").read_bytes() == CONTENT
        assert not os.get_inheritable(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_the_content_can_be_changed_by_no_one_who_inherits_it(tmp_path: Path) -> None:
    with open_var_files(workdir(tmp_path), "plan") as given:
        seals = fcntl.fcntl(given.descriptors[0], fcntl.F_GET_SEALS)
        assert seals & fcntl.F_SEAL_WRITE
        with pytest.raises(PermissionError):
            os.write(given.descriptors[0], b"x")


def test_without_memory_files_the_content_has_no_name_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_var_files(workdir(tmp_path), "plan") as given:
        name = f"/dev/fd/{given.descriptors[0]}"
        assert [Path(name).read_bytes() for _ in range(2)] == [CONTENT, CONTENT]
        assert [path.name for path in tmp_path.iterdir()] == ["engine"]


@pytest.mark.parametrize(
    ("flavour", "verb", "takes"),
    [
        (Flavour.TOFU, "init", True),
        (Flavour.TOFU, "state list", True),
        (Flavour.TERRAFORM, "init", False),
        (Flavour.TERRAFORM, "state list", False),
        (Flavour.TERRAFORM, "import", True),
    ],
)
def test_only_verbs_that_take_values_get_them(
    tmp_path: Path, flavour: Flavour, verb: str, takes: bool
) -> None:
    with open_var_files(workdir(tmp_path, flavour=flavour), verb) as given:
        assert bool(given.arguments) is takes


async def test_the_engine_inherits_the_descriptor_and_no_argument_shows_its_content(tmp_path: Path) -> None:
    script = f"""{FIND_NAME}
    cat "$name" >{tmp_path}/read
    cat /proc/$$/cmdline >{tmp_path}/cmdline
    """
    await statefile.state_rm(workdir(tmp_path, script), ("a.b",))
    assert (tmp_path / "read").read_bytes() == CONTENT
    words = (tmp_path / "cmdline").read_bytes().split(b"\0")
    assert not any(b"hunter2" in word for word in words)
    assert words[words.index(b"rm") + 1].startswith(b"-var-file=")
    assert words[-3:] == [b"--", b"a.b", b""]


async def test_text_that_quotes_a_private_file_loses_the_quote_and_names_the_users_file(
    tmp_path: Path,
) -> None:
    script = rf"""{FIND_NAME}
    printf 'Error: Bad text\n\n  on %s line 2:\n   1: before = "s3cret"\n' "$name" >&2
    printf '   2: broken = "s3cret\n\nSee %s:2,1-5.\n' "$name" >&2
    exit 1
    """
    with pytest.raises(failures.TofuError) as caught:
        await statefile.state_list(workdir(tmp_path, script))
    (finding,) = caught.value.findings
    assert finding.detail == f"on {USERS} line 2:\n\nSee {USERS}:2,1-5."
    assert "s3cret" not in str(caught.value)


async def test_a_diagnostic_of_validate_is_placed_in_the_users_file(tmp_path: Path) -> None:
    script = (
        FIND_NAME
        + r"""
    printf '{"diagnostics":[{"severity":"error","summary":"Bad","range":{"filename":"%s","start":{"line":2}},
            "snippet":{"code":"s3cret"}}]}' "$name"
    exit 1
    """
    )
    (diagnostic,) = await tofu.validate(workdir(tmp_path, script))
    assert diagnostic.where == Location(str(USERS), 2)
    assert "s3cret" not in repr(diagnostic)


def test_a_generated_line_is_placed_where_it_came_from() -> None:
    given = OpenVarFiles(private=(("/dev/fd/7", private(lines=(3, 9))),))
    assert given.locate(Location("/dev/fd/7", 2, 5)) == Location(str(USERS), 9)
    assert given.locate(Location("/dev/fd/7", 40)) == Location(str(USERS), 9)
    assert given.locate(Location("/dev/fd/71", 2)) == Location("/dev/fd/71", 2)
    assert given.translate("in /dev/fd/71, /dev/fd/7") == f"in /dev/fd/71, {USERS}"


def test_stray_lines_that_quote_a_file_are_dropped_from_a_stream(tmp_path: Path) -> None:
    seen: list[events.Event] = []
    stream = Stream(workdir(tmp_path), seen.append)
    stream.var_files = OpenVarFiles(private=(("/dev/fd/7", private()),))
    for line in ("Error: Bad", "│   on /dev/fd/7 line 1:", '│    1: password = "s3cret'):
        stream(process.Stream.STDERR, line)
    assert "s3cret" not in repr(seen) + repr(stream.stray)
    assert f"on {USERS} line 1" in repr(seen)


def test_its_representation_shows_no_content() -> None:
    assert "hunter2" not in repr(private())
