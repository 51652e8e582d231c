"""Objects in a bucket of S3 or of a store that speaks its protocol.

Conditions go with each write (`If-None-Match`, `If-Match`), and `check_conditions` proves that the store
honours them before anything relies on it. A write carries a number of its own in its metadata: when the
answer to it is lost, reading the object shows whether it is ours. This module is imported only by users of
S3: boto3 costs 300 ms.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import re
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
from urllib3.exceptions import HTTPError

from stackyard.clients.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    ListedObject,
    Stored,
    StoreDamagedError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnsafeError,
    Tag,
    check_key,
    check_write_id,
)
from stackyard.clients.objects.s3_client import S3Config, S3Credentials, make_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["S3Config", "S3Credentials", "S3Objects"]

# A check that two starting replicas make at once must not disturb either.
_CHECK_PREFIX = "checks"
_WRITE_ID = "write-id"
_MISSING_OBJECT = {"NoSuchKey", "404", "NotFound"}
_REFUSED = {409, 412}
_FORBIDDEN = {401, 403}
_NO_SPACE = {507}
# What is wrong is not what we may do, but how we say who we are.
_REMEDIES = {
    "RequestTimeTooSkewed": "Set the clock of this machine right, then run the command again.",
    "ExpiredToken": "Get new credentials: the session token has expired.",
    "InvalidAccessKeyId": "Check the access key: the store does not know it.",
    "SignatureDoesNotMatch": "Check the secret of the access key.",
}
_USER_IN_URL = re.compile(r"//[^/@\s\"']*@")

T = TypeVar("T")


class S3Objects:
    """A store in a bucket.

    Args:
        place: Where.
        is_checked: Whether the store proves that it honours conditions before anything is written.
        is_read_only: Whether that proof, which takes the right to write, waits for the first write.

    Raises:
        StoreUnsafeError: The store ignores conditions.
        StoreError: It cannot be reached, or the bucket is not there.
    """

    def __init__(self, place: S3Config, *, is_checked: bool = True, is_read_only: bool = False) -> None:
        self._place = place
        self._client = make_client(place)
        self._checking = threading.Lock()
        self._is_unproven = is_checked
        if not is_read_only:
            self._require_proof()

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        answer = self._read(check_key(key))
        if answer is None:
            return None
        return Stored(data=answer.data, tag=answer.tag)

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write those that come before it, then the object."""
        return self._put_with(key, data, expect, before, str(uuid.uuid4()))

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object, unless the one that is there has this id in its metadata."""
        return self._put_with(key, data, expect, before, check_write_id(write_id), may_be_done=True)

    def _put_with(
        self,
        key: str,
        data: bytes,
        expect: Expect,
        before: Mapping[str, bytes] | None,
        write_id: str,
        *,
        may_be_done: bool = False,
    ) -> Tag:
        others = {check_key(other): body for other, body in (before or {}).items()}
        check_key(key)
        self._require_proof()
        if others:
            self._put_all(others)
        return self._put(key, data, expect, {_WRITE_ID: write_id}, may_be_done=may_be_done)

    def delete(self, key: str) -> None:
        """Remove an object."""
        check_key(key)
        self._repeat(key, lambda: self._client.delete_object(**self._object_parameters(key)), is_write=True)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects behind `after` that begin with a prefix."""
        found: list[ListedObject] = []
        ours = f"{self._place.prefix}/" if self._place.prefix else ""
        request = {"Bucket": self._place.bucket, "Prefix": ours + prefix}
        if after:
            request["StartAfter"] = ours + after
        while len(found) < limit:
            wanted = {**request, "MaxKeys": min(1000, limit - len(found))}
            answer = self._repeat(prefix, functools.partial(self._client.list_objects_v2, **wanted))
            for row in answer.get("Contents", ()):
                key = row["Key"].removeprefix(ours)
                # Some stores list folders as objects, and some count `StartAfter` itself.
                if not key.endswith("/") and key != after:
                    at = row["LastModified"].timestamp()
                    found.append(ListedObject(key=key, size=row["Size"], modified_at=at))
            if not answer.get("IsTruncated"):
                break
            request["ContinuationToken"] = answer["NextContinuationToken"]
        return tuple(found[:limit])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _require_proof(self) -> None:
        """Have the store prove that it honours conditions, once."""
        with self._checking:
            if self._is_unproven:
                self.check_conditions()
                self._is_unproven = False

    def check_conditions(self) -> None:
        """Prove that the store refuses what a condition forbids.

        Raises:
            StoreUnsafeError: It does not.
        """
        key = f"{_CHECK_PREFIX}/{uuid.uuid4()}"
        try:
            tag = self._put(key, b"first", ABSENT)
            second = self._is_refused(key, b"second", ABSENT)
            replaced = self._put(key, b"third", tag)
            stale = self._is_refused(key, b"fourth", tag)
            kept = self._read(key)
        finally:
            with contextlib.suppress(StoreError):
                self._discard(key)
        if not (second and stale and kept is not None and kept.data == b"third" and kept.tag == replaced):
            which = "If-None-Match" if not second else "If-Match"
            raise StoreUnsafeError(
                f"The store of bucket {self._place.bucket} ignores {which}: two runs could hold one lock."
            )

    def _discard(self, key: str) -> None:
        """Remove an object that no one needs, and all that is left of it."""
        self.delete(key)

    def _is_refused(self, key: str, data: bytes, expect: Expect) -> bool:
        try:
            self._put(key, data, expect)
        except ConflictError:
            return True
        return False

    # --- Requests

    def _object_parameters(self, key: str) -> dict[str, Any]:
        prefix = self._place.prefix
        return {"Bucket": self._place.bucket, "Key": f"{prefix}/{key}" if prefix else key}

    def _read(self, key: str) -> _Answer | None:
        def read() -> _Answer | None:
            try:
                answer = self._client.get_object(**self._object_parameters(key))
            except ClientError as err:
                if err.response.get("Error", {}).get("Code") in _MISSING_OBJECT:
                    return None
                raise
            # botocore checks the length: a body that is cut off raises, and is read again.
            return _Answer(
                data=self._body(key, answer),
                tag=Tag(answer["ETag"]),
                write_id=answer.get("Metadata", {}).get(_WRITE_ID, ""),
            )

        return self._repeat(key, read)

    def _body(self, key: str, answer: Mapping[str, Any]) -> bytes:
        """Read a body, if it has a size that something of ours may have."""
        size = int(answer.get("ContentLength", 0))
        if size > self._place.largest_bytes:
            answer["Body"].close()
            raise StoreDamagedError(
                f"{key} in bucket {self._place.bucket} has {size} bytes, more than the"
                f" {self._place.largest_bytes} that are read.",
                remedy="Find out who wrote it; an earlier version may be the right one.",
            )
        data: bytes = answer["Body"].read()
        return data

    def _put_all(self, bodies: Mapping[str, bytes]) -> None:
        """Write several at once, because each is a round trip of its own; raise what any of them raised."""
        failures: list[BaseException] = []

        def write(key: str, data: bytes) -> None:
            try:
                self._put(key, data, ANYTHING)
            # An exception that ends a thread is lost.
            except BaseException as err:
                failures.append(err)

        (first, data), *rest = bodies.items()
        threads = [threading.Thread(target=write, args=pair) for pair in rest]
        for thread in threads:
            thread.start()
        write(first, data)
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _put(
        self,
        key: str,
        data: bytes,
        expect: Expect,
        marks: Mapping[str, str] | None = None,
        *,
        may_be_done: bool = False,
    ) -> Tag:
        """Write one object; when the answer is lost, look whether it is there before it is sent again."""
        metadata = {_WRITE_ID: str(uuid.uuid4()), **(marks or {})}
        request = self._write_parameters(key, data, expect, metadata)
        last: StoreError | None = None
        for _ in range(self._place.attempts):
            try:
                with self._errors(key, is_write=True):
                    return Tag(self._client.put_object(**request)["ETag"])
            except ConflictError:
                if last is None and not may_be_done:
                    raise
                # It may be our own first attempt that we are refused for.
            except StoreReadOnlyError:
                raise
            except StoreError as err:
                last = err
            there = self._read(key)
            if there is not None and there.write_id == metadata[_WRITE_ID]:
                return there.tag
            if _is_lost(there, expect):
                raise ConflictError(key)
        raise last or ConflictError(key)

    def _write_parameters(
        self, key: str, data: bytes, expect: Expect, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        request = {
            **self._object_parameters(key),
            "Body": data,
            # Seen with SeaweedFS 4: when we die between the head and the body of a request, what has come so
            # far is stored, as nothing. A digest lets the store see that it is not whole.
            "ContentMD5": base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode(),
            "Metadata": metadata,
        }
        if expect is ABSENT:
            request["IfNoneMatch"] = "*"
        elif expect is not ANYTHING:
            request["IfMatch"] = str(expect)
        return request

    def _repeat(self, key: str, action: Callable[[], T], *, is_write: bool = False) -> T:
        """Do what can be done twice, until it works or the attempts are used up."""
        for _ in range(self._place.attempts - 1):
            try:
                with self._errors(key, is_write=is_write):
                    return action()
            except (StoreReadOnlyError, StoreDeniedError, StoreDamagedError):
                raise
            except StoreError:
                continue
        with self._errors(key, is_write=is_write):
            return action()

    @contextlib.contextmanager
    def _errors(self, key: str, *, is_write: bool = False) -> Iterator[None]:
        try:
            yield
        except ClientError as err:
            raise self._refusal(key, err, is_write=is_write) from err
        except (BotoCoreError, HTTPError, OSError) as err:
            # The address may come from the environment, with a password in it.
            said = _USER_IN_URL.sub("//", str(err))
            raise StoreError(f"The store of bucket {self._place.bucket} cannot be reached: {said}.") from err

    def _refusal(self, key: str, err: Any, *, is_write: bool) -> Exception:
        said = err.response.get("Error", {})
        status = err.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if status in _REFUSED or said.get("Code") == "PreconditionFailed":
            return ConflictError(key)
        text = (
            f"The store of bucket {self._place.bucket} answered {status}"
            f" {said.get('Code', '')}: {said.get('Message', 'no reason given')}."
        )
        if status in _FORBIDDEN:
            kind = StoreReadOnlyError if is_write else StoreDeniedError
            return kind(text, remedy=_REMEDIES.get(said.get("Code", "")))
        return (StoreFullError if status in _NO_SPACE else StoreError)(text)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An object with the number of the write that it comes from."""

    data: bytes
    tag: Tag
    write_id: str


def _is_lost(there: _Answer | None, expect: Expect) -> bool:
    """Return whether a write can no longer succeed, because someone else's is there."""
    if expect is ABSENT:
        return there is not None
    return expect is not ANYTHING and (there is None or there.tag != expect)
