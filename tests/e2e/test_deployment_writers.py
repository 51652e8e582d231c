"""Many writers at once, each with one guest of its own: as many versions, as many guests, nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path

import pytest
from tests.support.deployment import CONTAINER, SMALL, place_in, text_of
from tests.support.deployment_bucket import ENV, new_bucket
from tests.support.forking import fork_program
from tests.support.seaweed import require_seaweed

from stackyard.base.errors import StackyardError
from stackyard.sources.deployment.edit import format_object, set_values
from stackyard.sources.deployment.fetch import Object, fetch, open_history
from stackyard.sources.deployment.lease import hold_lease
from stackyard.sources.deployment.settings import BucketAddress, ObjectLocation
from stackyard.sources.deployment.write import WriteRequest, write

WRITERS = 50

pytestmark = pytest.mark.timeout(600)


def add_guest(number: int) -> WriteRequest:
    entry = {**CONTAINER, "vm_id": 1000 + number, "hostname": f"guest-{number}"}

    def make(current: Object | None) -> bytes:
        assert current is not None
        return format_object(set_values(current.document.data, [f"containers.g{number}={json.dumps(entry)}"]))

    return WriteRequest(kind="edit", make=make, can_repeat=True, note=f"guest {number}", wait_s=500)


def first(place: ObjectLocation) -> None:
    write(place, WriteRequest(kind="put", make=lambda current: text_of(SMALL).encode()))


def all_at_once(place: ObjectLocation, count: int) -> list[StackyardError]:
    failures: list[StackyardError] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            write(place, add_guest(number))
        except StackyardError as err:
            failures.append(err)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def require_nothing_lost(place: ObjectLocation, count: int) -> None:
    guests = fetch(place).document.data["containers"]
    assert {name for name in guests if name.startswith("g")} == {f"g{number}" for number in range(count)}
    store = open_history(place)
    history = list(store.history())
    assert len(history) == count + 1
    sizes = [len(json.loads(store.read_version(one).data)["containers"]) for one in history]
    # Each version has exactly one guest more than the one before it.
    assert sizes == list(range(sizes[0], sizes[0] - count - 1, -1))
    store.close()


def test_fifty_writers_on_sqlite_make_fifty_versions_and_fifty_guests(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    first(place)
    assert all_at_once(place, WRITERS) == []
    require_nothing_lost(place, WRITERS)


@pytest.mark.parametrize("count", [12, pytest.param(WRITERS, marks=pytest.mark.soak)])
def test_writers_on_seaweedfs_make_a_version_and_a_guest_each(tmp_path: Path, count: int) -> None:
    bucket = new_bucket(require_seaweed())
    embedded = place_in(tmp_path)
    place = ObjectLocation(
        root=tmp_path,
        base=embedded.base,
        settings=embedded.settings,
        store=BucketAddress.parse(bucket.address),
        environ=ENV,
    )
    first(place)
    assert all_at_once(place, count) == []
    require_nothing_lost(place, count)


@pytest.mark.parametrize("count", [8, pytest.param(300, marks=pytest.mark.soak)])
def test_a_lease_that_goes_from_hand_to_hand_is_never_lost_and_leaves_no_signs(
    tmp_path: Path, count: int
) -> None:
    bucket = new_bucket(require_seaweed())
    embedded = place_in(tmp_path)
    store = BucketAddress.parse(bucket.address)
    place = ObjectLocation(
        root=tmp_path, base=embedded.base, settings=embedded.settings, store=store, environ=ENV
    )
    lost: list[str] = []

    def hold(hand: int) -> None:
        for number in range(count // 4):
            with hold_lease(place, "test", wait_s=500) as held:
                held.check()
                held.check()
                if held.is_lost:
                    lost.append(f"{hand}/{number}")

    threads = [threading.Thread(target=hold, args=(hand,)) for hand in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lost == []
    with contextlib.closing(bucket.store()) as seen:
        # The last sign of life, and that it was given back.
        assert len(list(seen.objects.versions(seen.lease_key, with_deletions=True))) <= 2


def processes(folder: Path, count: int) -> list[int]:
    """Let as many processes of the program as there are writers add a guest each."""
    running = []
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(), nothing.fileno(), nothing.fileno())
        for number in range(count):
            entry = json.dumps({**CONTAINER, "vm_id": 1000 + number, "hostname": f"guest-{number}"})
            arguments = ("deployment", "edit", "--set", f"containers.g{number}={entry}")
            running.append(fork_program(arguments, streams=streams, cwd=folder))
    return [process.wait() for process in running]


@pytest.mark.parametrize("count", [6, pytest.param(WRITERS, marks=pytest.mark.soak)])
def test_writers_that_are_processes_lose_nothing_either(tmp_path: Path, count: int) -> None:
    (tmp_path / "deployment.yaml").write_text("environment: homelab\n")
    first(place_in(tmp_path))
    assert processes(tmp_path, count) == [0] * count
    require_nothing_lost(place_in(tmp_path), count)
