"""Files that several processes change at once: nothing that one of them wrote is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.deployment import place_in

from stackyard.base import locks, yamledit
from stackyard.base.errors import FileError
from stackyard.secrets import Keyring, user_recipient
from stackyard.sources.deployment.checkouts import base_of, remember
from stackyard.sources.deployment.store import Version
from stackyard.state import daemon

AT_ONCE = 24


def at_once(work: Callable[[int], None]) -> None:
    """Do something from many threads at the same moment; each opens its files for itself, as processes do."""
    together = threading.Barrier(AT_ONCE)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        together.wait()
        try:
            work(number)
        except BaseException as err:
            failures.append(err)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_every_file_that_is_fetched_at_once_keeps_its_base(tmp_path: Path) -> None:
    place = place_in(tmp_path)

    def fetch(number: int) -> None:
        remember(place, tmp_path / f"{number}.json", Version(id=str(number), etag="", at=0.0, size=0))

    at_once(fetch)
    known = [base_of(place, tmp_path / f"{number}.json") for number in range(AT_ONCE)]
    assert known == [str(number) for number in range(AT_ONCE)]


@pytest.mark.parametrize("content", ["[]", "{", '{"x": 7}', "null", ""])
def test_a_damaged_memory_of_bases_is_begun_again(tmp_path: Path, content: str) -> None:
    place = place_in(tmp_path)
    place.base.mkdir()
    (place.base / "deployment-checkouts.json").write_text(content)
    remember(place, tmp_path / "x", Version(id="3", etag="", at=0.0, size=0))
    assert base_of(place, tmp_path / "x") == "3"


def test_of_those_who_make_the_first_key_of_a_user_at_once_all_use_the_same(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    found: set[str] = set()
    at_once(lambda number: found.add(user_recipient(Keyring(env=env))[0]))
    assert len(found) == 1
    text = Keyring(env=env).age_keys_file.read_text()
    assert text.count("AGE-SECRET-KEY-") == 1


def test_services_that_start_at_once_on_one_folder_use_the_same_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(daemon.PASSWORD_VARIABLE, raising=False)
    found: set[str] = set()
    at_once(lambda number: found.add(daemon._password(tmp_path)))
    assert len(found) == 1


def test_changes_of_one_yaml_file_at_once_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("first: 1\n")

    def edit(number: int) -> None:
        yamledit.edit_file(path, [yamledit.Set((f"key{number}",), number)])

    at_once(edit)
    assert sorted(path.read_text().splitlines()) == sorted(
        ["first: 1", *(f"key{number}: {number}" for number in range(AT_ONCE))]
    )


def test_a_folder_that_is_not_there_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(FileError), locks.hold_folder(tmp_path / "missing"):
        pass
