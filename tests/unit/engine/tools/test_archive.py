from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.support.releases import tarred, zipped

from stackyard.engine.tools.archive import extract_program
from stackyard.engine.tools.methods import ToolReleaseError

MAKERS = {"tofu.zip": zipped, "tofu.tar.gz": tarred}
EACH = pytest.mark.parametrize("file", MAKERS)


def extract(data: bytes, folder: Path, file: str = "tofu.zip") -> Path:
    archive, target = folder / file, folder / "out" / "tofu"
    archive.write_bytes(data)
    target.parent.mkdir()
    list(extract_program(archive, "tofu", target))
    return target


@EACH
def test_the_program_and_nothing_else_is_written(file: str, tmp_path: Path) -> None:
    entries = {"README.md": b"text", "tofu": b"program", "docs/tofu": b"text"}
    target = extract(MAKERS[file](entries), tmp_path, file)
    assert target.read_bytes() == b"program"
    assert list(target.parent.iterdir()) == [target]


@EACH
def test_progress_ends_at_the_whole_size(file: str, tmp_path: Path) -> None:
    archive = tmp_path / file
    archive.write_bytes(MAKERS[file]({"tofu": b"x" * 3_000_000}))
    steps = list(extract_program(archive, "tofu", tmp_path / "tofu"))
    assert len(steps) > 1
    assert steps[-1] == (3_000_000, 3_000_000)


@pytest.mark.parametrize(
    "name", ["../tofu", "a/../../tofu", "/etc/cron.d/tofu", "..\\tofu", "bin/../../../tofu"]
)
@EACH
def test_an_archive_with_a_path_that_leads_out_is_refused_whole(file: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(ToolReleaseError, match="leads out of its folder"):
        extract(MAKERS[file]({"tofu": b"program", name: b"evil"}), tmp_path, file)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out", file]


@pytest.mark.parametrize("entries", [{}, {"terraform": b"x"}, {"bin/tofu": b"x"}, {"tofu/": b""}])
@EACH
def test_an_archive_without_the_program_is_refused(
    file: str, entries: dict[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(ToolReleaseError, match="exactly one program `tofu`"):
        extract(MAKERS[file](entries), tmp_path, file)


def test_a_link_in_place_of_the_program_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("tofu")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/bin/sh")
    with pytest.raises(ToolReleaseError, match="exactly one program"):
        extract(buffer.getvalue(), tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_file_in_place_of_the_program_is_refused(kind: bytes, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("tofu")
        entry.type, entry.linkname = kind, "/bin/sh"
        archive.addfile(entry)
    with pytest.raises(ToolReleaseError, match="exactly one program"):
        extract(buffer.getvalue(), tmp_path, "tofu.tar.gz")


def test_a_size_that_cannot_be_right_is_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    data = bytearray(zipped({"tofu": b"program"}))
    # The size after unpacking stands 24 bytes into the entry of the central directory.
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (2**31).to_bytes(4, "little")
    with pytest.raises(ToolReleaseError, match="cannot be right"):
        extract(bytes(data), tmp_path)


@EACH
@pytest.mark.parametrize("damage", ["text", "cut", "flipped"])
def test_a_damaged_archive_is_refused(file: str, damage: str, tmp_path: Path) -> None:
    good = MAKERS[file]({"tofu": b"program" * 1000})
    flipped = bytearray(good)
    flipped[2000] ^= 0xFF
    damaged = {"text": b"<html>not found</html>", "cut": good[: len(good) // 2], "flipped": bytes(flipped)}
    with pytest.raises(ToolReleaseError, match=rf"{file} is not a usable archive"):
        extract(damaged[damage], tmp_path, file)
