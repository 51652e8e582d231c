from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest
from tests.support.releases import zipped

from stackyard.engine.tools.archive import extract_program
from stackyard.engine.tools.methods import ToolReleaseError


def extract(data: bytes, folder: Path) -> Path:
    archive, target = folder / "tofu.zip", folder / "out" / "tofu"
    archive.write_bytes(data)
    target.parent.mkdir()
    list(extract_program(archive, "tofu", target))
    return target


def test_the_program_and_nothing_else_is_written(tmp_path: Path) -> None:
    target = extract(zipped({"README.md": b"text", "tofu": b"program", "docs/tofu": b"text"}), tmp_path)
    assert target.read_bytes() == b"program"
    assert list(target.parent.iterdir()) == [target]


def test_progress_ends_at_the_whole_size(tmp_path: Path) -> None:
    archive = tmp_path / "tofu.zip"
    archive.write_bytes(zipped({"tofu": b"x" * 3_000_000}))
    steps = list(extract_program(archive, "tofu", tmp_path / "tofu"))
    assert len(steps) > 1
    assert steps[-1] == (3_000_000, 3_000_000)


@pytest.mark.parametrize(
    "name", ["../tofu", "a/../../tofu", "/etc/cron.d/tofu", "..\\tofu", "bin/../../../tofu"]
)
def test_an_archive_with_a_path_that_leads_out_is_refused_whole(name: str, tmp_path: Path) -> None:
    with pytest.raises(ToolReleaseError, match="leads out of its folder"):
        extract(zipped({"tofu": b"program", name: b"evil"}), tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out", "tofu.zip"]


@pytest.mark.parametrize("entries", [{}, {"terraform": b"x"}, {"bin/tofu": b"x"}, {"tofu/": b""}])
def test_an_archive_without_the_program_is_refused(entries: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(ToolReleaseError, match="exactly one program `tofu`"):
        extract(zipped(entries), tmp_path)


def test_a_link_in_place_of_the_program_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("tofu")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/bin/sh")
    with pytest.raises(ToolReleaseError, match="exactly one program"):
        extract(buffer.getvalue(), tmp_path)


def test_a_size_that_cannot_be_right_is_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    data = bytearray(zipped({"tofu": b"program"}))
    # The size after unpacking stands 24 bytes into the entry of the central directory.
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (2**31).to_bytes(4, "little")
    with pytest.raises(ToolReleaseError, match="cannot be right"):
        extract(bytes(data), tmp_path)


@pytest.mark.parametrize("damage", ["text", "cut", "flipped"])
def test_a_damaged_archive_is_refused(damage: str, tmp_path: Path) -> None:
    good = zipped({"tofu": b"program" * 1000})
    flipped = bytearray(good)
    flipped[2000] ^= 0xFF
    damaged = {"text": b"<html>not found</html>", "cut": good[: len(good) // 2], "flipped": bytes(flipped)}
    with pytest.raises(ToolReleaseError, match=r"tofu\.zip is not a usable zip archive"):
        extract(damaged[damage], tmp_path)
