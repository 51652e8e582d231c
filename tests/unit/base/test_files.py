"""Reading and replacing whole files, with files, folders and links as users have them."""

from __future__ import annotations

import concurrent.futures
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from stackyard.base.errors import ExitStatus, FileError
from stackyard.base.files import ForeignLinkError, make_file, open_file, read_text, replace_file, sync_folder


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_text_is_returned_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes("name: größe\r\n\tend".encode())
    assert read_text(path) == "name: größe\r\n\tend"


def test_an_empty_file_is_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert read_text(path) == ""


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "from-windows.json"
    path.write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(path) == "{}"


@pytest.mark.parametrize(
    ("data", "byte", "line", "column"),
    [
        pytest.param(b"\xff", "0xff", 1, 1, id="first byte"),
        pytest.param(b"abc\xff", "0xff", 1, 4, id="later on the first line"),
        pytest.param(b"one\ntwo\n  \xe9t\xe9\n", "0xe9", 3, 3, id="latin-1"),
        pytest.param("größe: ".encode() + b"\xfc", "0xfc", 1, 8, id="columns are characters, not bytes"),
        pytest.param(b"a\n\xe2\x82", "0xe2", 2, 1, id="cut off inside a character"),
        pytest.param("a".encode("utf-16"), "0xff", 1, 1, id="utf-16"),
        pytest.param(b"\xef\xbb\xbfx\x80", "0x80", 1, 2, id="after a byte order mark"),
        pytest.param(b"a\r\nb\xed\xa0\x80", "0xed", 2, 2, id="half of a surrogate pair"),
    ],
)
def test_text_that_is_not_utf8_is_refused_with_its_line_and_column(
    data: bytes, byte: str, line: int, column: int, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_bytes(data)
    with pytest.raises(FileError) as caught:
        read_text(path)
    err = caught.value
    assert err.where is not None
    assert (err.where.path, err.where.line, err.where.column) == (str(path), line, column)
    assert f"byte {byte} at line {line}, column {column}" in err.detail
    assert err.remedy == "Save the file as UTF-8."


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.yaml", "No such file"),
        (".", "Is a directory"),
        ("file/below", "Not a directory"),
        ("a\0b", "null"),
    ],
)
def test_a_path_that_cannot_be_read_is_one_clear_error(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(FileError, match=reason) as caught:
        read_text(path)
    assert caught.value.detail.startswith(f"Cannot read {path}: ")
    assert caught.value.exit_status is ExitStatus.INVALID
    assert str(caught.value.where) == str(path)


def test_a_new_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        replace_file(tmp_path / "token", b"secret")
    finally:
        os.umask(before)
    assert (tmp_path / "token").read_bytes() == b"secret"
    assert mode_of(tmp_path / "token") == 0o600


def test_a_replaced_file_gets_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o666)
    replace_file(path, b"new")
    assert mode_of(path) == 0o600
    replace_file(path, b"newer", mode=0o644)
    assert mode_of(path) == 0o644


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    for number in range(20):
        replace_file(tmp_path / "state.json", b"x" * number)
    assert listed(tmp_path) == ["state.json"]
    assert (tmp_path / "state.json").read_bytes() == b"x" * 19


def test_a_reader_that_holds_the_old_file_keeps_the_whole_of_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old" * 1000)
    with path.open("rb") as reader:
        replace_file(path, b"new")
        assert reader.read() == b"old" * 1000
    assert path.read_bytes() == b"new"


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    for name in ("n" * 255, "ü" * 127, "😀" * 63):
        replace_file(tmp_path / name, b"data")
        assert (tmp_path / name).read_bytes() == b"data"


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "site.yaml"
    target.write_bytes(b"old")
    (tmp_path / "middle").symlink_to("dotfiles/site.yaml")
    link = tmp_path / "site.yaml"
    link.symlink_to("middle")
    replace_file(link, b"new")
    assert os.readlink(link) == "middle"
    assert (link.read_bytes(), target.read_bytes()) == (b"new", b"new")
    assert not target.is_symlink()
    assert listed(tmp_path / "dotfiles") == ["site.yaml"]


def test_a_link_to_nothing_gets_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    replace_file(tmp_path / "link", b"data")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"data"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(FileError, match="symbolic links"):
        replace_file(tmp_path / "a", b"data")
    assert listed(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").is_symlink()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder", "Is a directory"),
        ("no/such", "No such file"),
        ("file/below", "Not a directory"),
        ("a\0b", "null"),
    ],
)
def test_a_place_that_cannot_be_written_is_one_clear_error(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    path = tmp_path / name
    with pytest.raises(FileError, match=reason) as caught:
        replace_file(path, b"new")
    assert caught.value.detail.startswith(f"Cannot write {path}: ")
    assert listed(tmp_path) == ["file", "folder"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_writers_at_the_same_time_leave_one_whole_version(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    versions = [bytes([letter]) * 100_000 for letter in b"abcdefgh"]
    with concurrent.futures.ThreadPoolExecutor(len(versions)) as pool:
        list(pool.map(lambda data: replace_file(path, data), versions * 5))
    assert path.read_bytes() in versions
    assert listed(tmp_path) == ["state.json"]


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "missing")


# --- Paths in folders that others can write to


def mallory(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Make some files and links look like another user's, as `chown` does where one may."""
    foreign = {(status.st_dev, status.st_ino) for status in map(os.lstat, paths)}
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        if (status.st_dev, status.st_ino) not in foreign:
            return status
        return os.stat_result((*status[:4], 4242, *status[5:]))

    monkeypatch.setattr(os, "fstat", fstat)


def test_a_file_that_is_there_stays_and_the_caller_learns_of_it(tmp_path: Path) -> None:
    path = tmp_path / "home.snapshot"
    assert make_file(path, b"first")
    assert not make_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert listed(tmp_path) == ["home.snapshot"]


@pytest.mark.parametrize("write", [replace_file, make_file])
def test_a_link_of_another_user_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], None]
) -> None:
    ours, link = tmp_path / "authorized_keys", tmp_path / "plan.out"
    ours.write_bytes(b"ours")
    link.symlink_to(ours)
    mallory(monkeypatch, link)
    with pytest.raises(ForeignLinkError, match=r"'plan\.out' belongs to user 4242"):
        write(link, b"plan")
    assert ours.read_bytes() == b"ours"
    assert listed(tmp_path) == ["authorized_keys", "plan.out"]


def test_a_folder_that_is_a_link_of_another_user_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "reports").symlink_to("home")
    mallory(monkeypatch, tmp_path / "reports")
    for path in ("reports/.profile", "reports/../reports/.profile", "home/../reports/.profile"):
        with pytest.raises(ForeignLinkError):
            replace_file(tmp_path / path, b"x")
        with pytest.raises(ForeignLinkError):
            open_file(tmp_path / path)
    assert listed(tmp_path / "home") == []


def test_a_log_is_not_written_to_the_file_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text("theirs")
    mallory(monkeypatch, log)
    with pytest.raises(ForeignLinkError):
        open_file(log)
    assert log.read_text() == "theirs"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_that_really_is_another_users_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    os.lchown(tmp_path / "link", 65534, 65534)
    with pytest.raises(ForeignLinkError, match="belongs to nobody"):
        replace_file(tmp_path / "link", b"data")
    assert listed(tmp_path) == ["link"]


def test_a_part_of_the_path_that_is_exchanged_meanwhile_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that was looked at is the one that is written to, whatever has its name by then."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "home").mkdir()
    real = os.fsync

    def exchange(descriptor: int) -> None:
        if (tmp_path / "shared").is_dir() and not (tmp_path / "shared").is_symlink():
            (tmp_path / "shared").rename(tmp_path / "moved")
            (tmp_path / "shared").symlink_to("home")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", exchange)
    replace_file(tmp_path / "shared" / "file", b"data")
    assert listed(tmp_path / "home") == []
    assert listed(tmp_path / "moved") == ["file"]


def test_an_open_file_is_private_and_goes_on_or_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    before = os.umask(0)
    try:
        with open_file(path) as stream:
            stream.write(b"one")
    finally:
        os.umask(before)
    assert mode_of(path) == 0o600
    with open_file(path, is_appended=True) as stream:
        assert stream.tell() == 3
        stream.write(b"two")
    assert path.read_bytes() == b"onetwo"
    with open_file(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_log_may_go_to_a_device() -> None:
    with open_file(Path("/dev/null")) as stream:
        stream.write(b"x")
