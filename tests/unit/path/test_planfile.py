"""Saved plans: encrypted, bound to what they were made for, of use to their maker alone."""

from __future__ import annotations

import dataclasses
import stat
from pathlib import Path

import pytest

from stackyard.base.errors import FileError
from stackyard.clients.objects.sealed import KeyRing, make_master_key
from stackyard.path.planfile import Binding, PlanFile, PlanFileError, PlanKey, PlanMovedError, plan_keys

KEY = PlanKey(b"k" * 32)
BINDING = Binding(
    target="env:dev",
    state_name="env/dev/pve1",
    input="abc",
    state="lineage/3",
    code="0.1.0",
    engine="OpenTofu 1.12.6",
    provider="builtin",
    mode="normal",
)


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    key, path = KEY, tmp_path / "plans" / "dev.plan"
    saved = PlanFile(binding=BINDING, plan=b"the engine's plan with a s3cret")
    saved.save(path, key)
    assert PlanFile.load(path, [key]) == dataclasses.replace(saved, key=key)
    assert b"s3cret" not in path.read_bytes()
    assert b"env:dev" not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "s3cret" not in repr(saved)


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    key, path = KEY, tmp_path / "dev.plan"
    PlanFile(binding=BINDING, plan=b"p").save(path, key)
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        with pytest.raises(PlanFileError):
            PlanFile.load(path, [key])
    for cut in (0, 5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(PlanFileError):
            PlanFile.load(path, [key])


def test_a_plan_of_another_site_does_not_open(tmp_path: Path) -> None:
    path = tmp_path / "dev.plan"
    PlanFile(binding=BINDING, plan=b"p").save(path, KEY)
    with pytest.raises(PlanFileError, match="another key than that of this site"):
        PlanFile.load(path, [PlanKey(b"o" * 32)])


def test_a_missing_plan_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Cannot read"):
        PlanFile.load(tmp_path / "gone", [KEY])


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Binding)])
def test_a_plan_is_refused_when_anything_moved_and_says_what(field: str) -> None:
    now = dataclasses.replace(BINDING, **{field: "moved"})
    with pytest.raises(PlanMovedError, match="and is now moved"):
        BINDING.require(now)


def test_a_plan_that_still_fits_is_let_through() -> None:
    BINDING.require(dataclasses.replace(BINDING))


def test_a_plan_of_a_key_that_was_rotated_opens_with_the_old_key_in_the_ring(tmp_path: Path) -> None:
    old, new = make_master_key(), make_master_key()
    before, after = (plan_keys(KeyRing.from_text(text)) for text in (old, f"{new},{old}"))
    PlanFile(binding=BINDING, plan=b"p").save(tmp_path / "dev.plan", before[0])
    opened = PlanFile.load(tmp_path / "dev.plan", after)
    assert opened.key == before[0] == after[1]
    with pytest.raises(PlanFileError, match="another key"):
        PlanFile.load(tmp_path / "dev.plan", plan_keys(KeyRing.from_text(new)))


def test_a_key_shows_nothing_of_itself(tmp_path: Path) -> None:
    key = KEY
    assert key.secret.hex() not in repr(key)
    assert repr(key) == "PlanKey()"
