"""The object in a bucket that others write to too, that denies things, or that is not what it should be."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.deployment import SMALL, edited, text_of
from tests.support.deployment_bucket import ENV, Bucket, new_bucket
from tests.support.seaweed import READER_KEY, SECRET_KEY, Seaweed, seaweed

from stackyard.base.errors import InvalidInputError, StackyardError, UsageError
from stackyard.clients.objects import (
    ANYTHING,
    StoreDamagedError,
    StoreError,
    StoreReadOnlyError,
    open_objects,
)
from stackyard.clients.objects.s3 import S3Config, S3Credentials
from stackyard.clients.objects.versions import VersionedObjects
from stackyard.sources.deployment.fetch import FetchError, fetch, open_history
from stackyard.sources.deployment.lease import hold_lease
from stackyard.sources.deployment.lease_status import break_lease, lease_status
from stackyard.sources.deployment.settings import BucketAddress, ObjectLocation, SettingsFile
from stackyard.sources.deployment.store import ObjectMissingError, VersionUnknownError
from stackyard.sources.deployment.write import WriteRequest, write
from stackyard.state import StateService

__all__ = ["seaweed"]

READING = {"S3_ACCESS_KEY_ID": READER_KEY, "S3_SECRET_ACCESS_KEY": SECRET_KEY}


def _place(bucket: Bucket, folder: Path, env: dict[str, str] = ENV, **settings: Any) -> ObjectLocation:
    return ObjectLocation(
        root=folder,
        base=folder / ".stackyard",
        settings=SettingsFile(**settings),
        store=BucketAddress.parse(bucket.address),
        environ=env,
    )


@pytest.fixture
def bucket(seaweed: Seaweed) -> Bucket:
    return new_bucket(seaweed)


@pytest.fixture
def client(bucket: Bucket) -> Iterator[Any]:
    """Give another program's way to the bucket."""
    made = bucket.client()
    yield made
    made.close()


def _write(place: ObjectLocation, data: dict[str, Any]) -> None:
    text = text_of(data).encode()
    write(place, WriteRequest(kind="put", make=lambda current: text, wait_s=5))


def test_who_may_only_read_reads_everything_and_is_told_what_is_missing_to_write(
    bucket: Bucket, tmp_path: Path
) -> None:
    _write(_place(bucket, tmp_path), SMALL)
    _write(_place(bucket, tmp_path), edited(SMALL, domain="example.com"))
    place = _place(bucket, tmp_path, READING)
    assert fetch(place).document.data["domain"] == "example.com"
    store = open_history(place)
    versions = list(store.history())
    assert [version.is_current for version in versions] == [True, False]
    assert b"example.com" not in store.read_version(versions[1]).data
    store.close()
    assert not lease_status(place).is_held
    with pytest.raises(StoreReadOnlyError) as caught:
        _write(place, SMALL)
    assert "S3_*" in (caught.value.remedy or "")
    assert SECRET_KEY not in f"{caught.value.detail} {caught.value.remedy}"
    assert fetch(place).document.data["domain"] == "example.com"


def test_states_in_a_bucket_are_read_by_who_may_only_read(
    seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = seaweed.address("readable")
    writer = open_objects(address)
    writer.put("heads/x", b"{}", expect=ANYTHING)
    # What others put there under names that no state has.
    for name in ("heads/bad name", "heads/\u00e9", "heads/!!"):
        writer._client.put_object(Bucket="stackyard", Key=f"readable/{name}", Body=b"{")  # type: ignore[attr-defined]
    writer.close()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", READER_KEY)
    reader = open_objects(address, create=False)
    assert list(StateService(reader).names()) == ["x"]
    with pytest.raises(StoreReadOnlyError):
        reader.put("heads/x", b"", expect=ANYTHING)
    reader.close()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused = open_objects(address, create=False)
    with pytest.raises(StoreError) as caught:
        refused.get("heads/x")
    assert not isinstance(caught.value, StoreReadOnlyError)
    assert "secret" in (caught.value.remedy or "").lower()
    refused.close()


def test_objects_of_others_beside_ours_are_not_taken_for_ours(
    bucket: Bucket, client: Any, tmp_path: Path
) -> None:
    place = _place(bucket, tmp_path)
    _write(place, SMALL)
    for name in (".bak", ".lease.old", ".lease-audit/0", ".lease.d/x", "x", "/inside", ".%2e%2e"):
        for _ in range(2):
            client.put_object(Bucket=bucket.name, Key=f"{bucket.key}{name}", Body=b"\x00not json")
    _write(place, edited(SMALL, domain="example.com"))
    store = open_history(place)
    assert len(list(store.history())) == 2
    store.close()
    assert not lease_status(place).is_held


def test_versions_that_others_remove_are_missing_and_break_nothing(
    bucket: Bucket, client: Any, tmp_path: Path
) -> None:
    place = _place(bucket, tmp_path)
    for number in range(3):
        _write(place, edited(SMALL, domain=f"example{number}.com"))
    store = open_history(place)
    versions = list(store.history())
    walking = store.history()
    assert next(walking).is_current
    client.delete_object(Bucket=bucket.name, Key=bucket.key, VersionId=versions[1].id)
    # What was listed before it was removed: who wrote it is not known any more.
    assert [version.etag for version in walking][-1] == versions[2].etag
    with pytest.raises(VersionUnknownError):
        store.read_version(versions[1])
    assert len(list(store.history())) == 2
    client.delete_object(Bucket=bucket.name, Key=bucket.key)
    with pytest.raises(ObjectMissingError):
        fetch(place)
    assert len(list(store.history())) == 2
    store.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"nodes": {',
        b"\xff\xfe\x00",
        b'{"a": 1, "a": 2}',
        json.dumps({"containers": [1, 2]}).encode(),
    ],
)
def test_an_object_that_others_wrote_is_refused_with_a_reason(
    bucket: Bucket, client: Any, tmp_path: Path, content: bytes
) -> None:
    place = _place(bucket, tmp_path)
    _write(place, SMALL)
    client.put_object(Bucket=bucket.name, Key=bucket.key, Body=content)
    with pytest.raises((InvalidInputError, FetchError)):
        write(
            place,
            WriteRequest(kind="edit", make=lambda current: fetch(place).document.text.encode(), wait_s=5),
        )
    store = open_history(place)
    assert len(list(store.history())) == 2
    store.close()


def test_an_object_or_lease_that_is_too_large_is_not_read(bucket: Bucket, client: Any) -> None:
    where = S3Config(
        bucket=bucket.name,
        endpoint_url=bucket.endpoint,
        credentials=S3Credentials(access_key=ENV["S3_ACCESS_KEY_ID"], secret_key=SECRET_KEY),
        largest_bytes=1000,
    )
    objects = VersionedObjects(where)
    client.put_object(Bucket=bucket.name, Key=bucket.key, Body=b"x" * 1001)
    for read in (lambda: objects.get(bucket.key), lambda: objects.get_version(bucket.key)):
        with pytest.raises(StoreDamagedError, match="1001 bytes"):
            read()
    client.put_object(Bucket=bucket.name, Key=bucket.key, Body=b"x" * 1000)
    assert objects.get(bucket.key) is not None
    objects.close()


def test_a_lease_that_others_wrote_is_named_and_can_be_broken(
    bucket: Bucket, client: Any, tmp_path: Path
) -> None:
    place = _place(bucket, tmp_path)
    for content in (b"", b"[" * 100_000, b'{"owner": 7}'):
        client.put_object(Bucket=bucket.name, Key=f"{bucket.key}.lease", Body=content)
        with pytest.raises(StoreDamagedError):
            _write(place, SMALL)
        break_lease(place, "it is none of ours")
        with hold_lease(place, "next", wait_s=5):
            pass


def test_a_bucket_that_denies_deleting_takes_writes_all_the_same(
    bucket: Bucket, client: Any, tmp_path: Path
) -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": ["s3:DeleteObject", "s3:DeleteObjectVersion"],
                "Resource": f"arn:aws:s3:::{bucket.name}/{bucket.key}*",
            }
        ],
    }
    client.put_bucket_policy(Bucket=bucket.name, Policy=json.dumps(policy))
    try:
        place = _place(bucket, tmp_path)
        for number in range(3):
            _write(place, edited(SMALL, domain=f"example{number}.com"))
        assert fetch(place).document.data["domain"] == "example2.com"
        assert not lease_status(place).is_held
    finally:
        client.delete_bucket_policy(Bucket=bucket.name)


def test_a_list_that_loses_our_versions_among_those_of_others_is_no_empty_history(
    bucket: Bucket, client: Any, tmp_path: Path
) -> None:
    place = _place(bucket, tmp_path)
    for number in range(5):
        _write(place, edited(SMALL, domain=f"example{number}.com"))
        client.put_object(Bucket=bucket.name, Key=f"{bucket.key}-{number}", Body=b"x")
    store = bucket.store()
    asked = store.objects._client.list_object_versions
    # As with more than a thousand others: SeaweedFS goes through them in an order of its own.
    store.objects._client.list_object_versions = lambda **request: asked(**{**request, "MaxKeys": 2})
    found = None
    with contextlib.suppress(StoreError):
        found = list(store.history())
    assert found != []
    store.close()


def test_a_password_in_an_endpoint_is_refused_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = "http://me:hunter2@127.0.0.1:1"
    said = []
    with pytest.raises(UsageError) as caught:
        BucketAddress.parse(f"s3://b/k?endpoint={endpoint}")
    said.append(caught.value)
    with pytest.raises(UsageError) as caught:
        open_objects(f"s3://b/k?endpoint={endpoint}", create=False)
    said.append(caught.value)
    monkeypatch.setenv("S3_ENDPOINT", endpoint)
    with pytest.raises(UsageError) as caught:
        BucketAddress.parse("s3://b/k")
    said.append(caught.value)
    assert not any("hunter2" in f"{err} {err.detail} {err.remedy}" for err in said)


def test_a_password_in_the_address_of_the_surroundings_is_not_in_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://me:hunter2@127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "swordfish")
    with pytest.raises(StackyardError) as caught:
        open_objects("s3://b/k")
    assert "hunter2" not in caught.value.detail
    assert "swordfish" not in caught.value.detail
