"""A head that is kept in memory is the one in the store."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.support.state_client import state_body

from stackyard.clients.objects import ANYTHING, StoreDamagedError, open_objects
from stackyard.state import Actor, LockInfo, StateService, codec, layout, make_lock_info

ME = Actor(principal="me", address="192.0.2.1")
NAME = "env/dev/pve1"


def test_kept_head_equals_the_one_in_the_store(tmp_path: Path) -> None:
    objects = open_objects(tmp_path)
    service = StateService(objects)
    for serial in range(1, 41):
        lock = make_lock_info(LockInfo(id=str(uuid.uuid4()), who="me"))
        service.locks.lock(NAME, lock, ME)
        service.contents.write(NAME, state_body(serial), ME, lock_id=lock.id)
        service.locks.unlock(NAME, lock.id, ME)
        stored = objects.get(layout.head(NAME))
        assert stored is not None
        assert service.head(NAME) == codec.load_head(stored.data, layout.head(NAME))
    objects.close()


def test_what_another_service_changes_is_seen(tmp_path: Path) -> None:
    objects, others = open_objects(tmp_path), open_objects(tmp_path)
    ours, theirs = StateService(objects), StateService(others)
    for serial in range(1, 11):
        writer, reader = (ours, theirs) if serial % 2 else (theirs, ours)
        writer.contents.write(NAME, state_body(serial), ME)
        current = reader.head(NAME).current
        assert current is not None
        assert current.serial == serial
    objects.close()
    others.close()


def test_damaged_head_is_found_although_a_good_one_was_kept(tmp_path: Path) -> None:
    objects = open_objects(tmp_path)
    service = StateService(objects)
    service.contents.write(NAME, state_body(1), ME)
    objects.put(layout.head(NAME), b"{}", expect=ANYTHING)

    with pytest.raises(StoreDamagedError):
        service.head(NAME)
    objects.close()
