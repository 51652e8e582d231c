"""A bucket that keeps versions, on the SeaweedFS of this test process, and the credentials of the object."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from typing import Any

import boto3  # type: ignore[import-untyped]
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed

from stackyard.clients.objects.s3 import S3Config, S3Credentials
from stackyard.clients.objects.versions import VersionedObjects
from stackyard.sources.deployment.bucket import BucketStore

__all__ = ["ENV", "Bucket", "new_bucket"]

ENV = {"S3_ACCESS_KEY_ID": ACCESS_KEY, "S3_SECRET_ACCESS_KEY": SECRET_KEY}
# One bucket each for a test process: SeaweedFS keeps volumes of its own for every bucket.
VERSIONED, UNVERSIONED = "versioned", "unversioned"


@dataclass(frozen=True)
class Bucket:
    """A key of its own in a bucket, for one test."""

    name: str
    endpoint: str
    key: str

    @property
    def address(self) -> str:
        return f"s3://{self.name}/{self.key}?endpoint={self.endpoint}"

    def client(self) -> Any:
        """Return another program's way to the bucket."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
        )

    def store(self) -> BucketStore:
        place = S3Config(
            bucket=self.name,
            endpoint_url=self.endpoint,
            credentials=S3Credentials(access_key=ACCESS_KEY, secret_key=SECRET_KEY),
        )
        return BucketStore(VersionedObjects(place), self.key, f"s3://{self.name}/{self.key}")


def new_bucket(seaweed: Seaweed, *, keeps_versions: bool = True) -> Bucket:
    name = VERSIONED if keeps_versions else UNVERSIONED
    bucket = Bucket(name, seaweed.endpoint, f"{uuid.uuid4().hex}/deployment.json")
    client = bucket.client()
    # Others make the same bucket at the same moment.
    with contextlib.suppress(
        client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou
    ):
        client.create_bucket(Bucket=name)
    if keeps_versions:
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    client.close()
    return bucket
