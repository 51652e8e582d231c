"""A bucket under object lock, where no version can be deleted for a day: states work in it."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from tests.support.deployment_bucket import Bucket
from tests.support.seaweed import Seaweed, seaweed

from stackyard.clients.objects import open_objects
from stackyard.state import Actor, StateService

__all__ = ["seaweed"]

ME = Actor(principal="test")
RETENTION = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 1}}}


@pytest.fixture
def locked(seaweed: Seaweed) -> Bucket:
    """Have a bucket that keeps every version of every object for a day, whoever asks."""
    bucket = Bucket(name=f"locked-{uuid.uuid4().hex[:8]}", endpoint=seaweed.endpoint, key="states")
    client = bucket.client()
    client.create_bucket(Bucket=bucket.name, ObjectLockEnabledForBucket=True)
    client.put_object_lock_configuration(Bucket=bucket.name, ObjectLockConfiguration=RETENTION)
    return bucket


def state(serial: int) -> bytes:
    return b'{"version":4,"serial":%d,"lineage":"l","outputs":{},"resources":[]}' % serial


def test_states_are_locked_and_written_where_no_version_can_be_deleted(locked: Bucket) -> None:
    with contextlib.closing(open_objects(locked.address)) as objects:
        states = StateService(objects)
        for serial in (1, 2, 3):
            lock = f"ours-{serial}"
            states.locks.lock("env/a", f'{{"ID": "{lock}", "Operation": "apply", "Who": "me"}}'.encode(), ME)
            states.contents.write("env/a", state(serial), ME, lock_id=lock)
            states.locks.unlock("env/a", lock, ME)
        found = states.contents.read("env/a")
        assert found is not None
        assert found.body.data == state(3)
        assert [row for row in states.locks.report("") if row.held is not None] == []
    client: Any = locked.client()
    versions = client.list_object_versions(Bucket=locked.name).get("Versions", [])
    assert versions
    with pytest.raises(ClientError, match="AccessDenied"):
        client.delete_object(Bucket=locked.name, Key=versions[0]["Key"], VersionId=versions[0]["VersionId"])
