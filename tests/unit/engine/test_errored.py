from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.engine import scripted_engine, workdir_in

from stackyard.engine import errored, tofu


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        ("", errored.ErroredVerdict.NEWER),
        ('{"lineage": "", "serial": 0}', errored.ErroredVerdict.NEWER),
        ('{"lineage": "l", "serial": 4}', errored.ErroredVerdict.NEWER),
        (
            '{"lineage": "l", "serial": 5, "resources": [1], "terraform_version": "x"}',
            errored.ErroredVerdict.STORED,
        ),
        ('{"lineage": "l", "serial": 5, "resources": [2]}', errored.ErroredVerdict.DIVERGED),
        ('{"lineage": "l", "serial": 6, "resources": [1]}', errored.ErroredVerdict.OLDER),
        ('{"lineage": "m", "serial": 1}', errored.ErroredVerdict.OTHER_LINEAGE),
    ],
)
def test_a_left_over_state_is_compared_with_the_stored_one(
    stored: str, verdict: errored.ErroredVerdict, tmp_path: Path
) -> None:
    left = tmp_path / errored.ERRORED_STATE
    left.write_text('{"lineage": "l", "serial": 5, "resources": [1]}')
    workdir = workdir_in(scripted_engine(tmp_path, f"printf '%s' '{stored}'; cat > pushed"), tmp_path)
    found = asyncio.run(errored.find_errored_state(workdir))
    assert found is not None
    assert found.verdict is verdict
    (tmp_path / "pushed").unlink()
    if not verdict.pushable:
        with pytest.raises(errored.ErroredStateError, match=errored.ERRORED_STATE):
            asyncio.run(errored.push_errored_state(workdir, found))
        assert left.exists()
        assert not (tmp_path / "pushed").exists()
        return
    moved = asyncio.run(errored.push_errored_state(workdir, found))
    assert not left.exists()
    assert moved.read_text() == '{"lineage": "l", "serial": 5, "resources": [1]}'
    assert (tmp_path / "pushed").exists() is (verdict is errored.ErroredVerdict.NEWER)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", errored.ErroredVerdict.UNREADABLE),
        ('{"lineage": "l", "ser', errored.ErroredVerdict.UNREADABLE),
        ("[]", errored.ErroredVerdict.UNREADABLE),
        ('{"lineage": "l"}', errored.ErroredVerdict.UNREADABLE),
        ('{"lineage": "l", "serial": 5, "encrypted_data": "…"}', errored.ErroredVerdict.ENCRYPTED),
    ],
)
def test_a_left_over_file_that_cannot_be_pushed_stays_until_it_is_set_aside(
    text: str, verdict: errored.ErroredVerdict, tmp_path: Path
) -> None:
    left = tmp_path / errored.ERRORED_STATE
    left.write_text(text)
    (tmp_path / f"{errored.ERRORED_STATE}.set-aside-1").write_text("from before")
    workdir = workdir_in(scripted_engine(tmp_path, "true"), tmp_path)
    found = asyncio.run(errored.find_errored_state(workdir))
    assert found is not None
    assert found.verdict is verdict
    with pytest.raises(errored.ErroredStateError):
        asyncio.run(errored.push_errored_state(workdir, found))
    with pytest.raises(errored.ErroredStateError):
        asyncio.run(tofu.apply(workdir, tmp_path / "plan"))
    moved = errored.set_aside_errored_state(found)
    assert moved.name == f"{errored.ERRORED_STATE}.set-aside-2"
    assert moved.read_text() == text
    assert (tmp_path / f"{errored.ERRORED_STATE}.set-aside-1").read_text() == "from before"
    assert asyncio.run(errored.find_errored_state(workdir)) is None


def test_a_state_from_the_stream_goes_to_the_first_folder_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workdir = workdir_in(scripted_engine(tmp_path, "true"), tmp_path / "folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    taken = []
    assert errored.keep_errored_state(workdir, None) is None
    for _ in range(3):
        kept = errored.keep_errored_state(workdir, b"{}")
        assert kept is not None
        assert kept.stat().st_mode & 0o777 == 0o600
        taken.append(kept)
        # A folder of that name lets nobody write the file.
        kept.unlink()
        kept.mkdir()
    assert taken[:2] == [
        workdir.folder / "errored.tfstate",
        workdir.folder / ".terraform" / "errored.tfstate",
    ]
    assert taken[2].parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", [".", ".terraform"])
def test_a_left_over_state_is_made_private_and_keeps_an_apply_from_starting(
    place: str, tmp_path: Path
) -> None:
    left = tmp_path / place / errored.ERRORED_STATE
    left.parent.mkdir(exist_ok=True)
    left.write_text('{"lineage": "l", "serial": 5}')
    left.chmod(0o644)
    workdir = workdir_in(scripted_engine(tmp_path, "true"), tmp_path)
    assert errored.keep_errored_state(workdir, None) == left
    assert left.stat().st_mode & 0o777 == 0o600
    found = asyncio.run(errored.find_errored_state(workdir))
    assert found is not None
    assert found.path == left
    with pytest.raises(errored.ErroredStateError, match=str(left)):
        asyncio.run(tofu.apply(workdir, tmp_path / "plan"))
