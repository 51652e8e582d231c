"""Another S3 server than SeaweedFS: the one whose address STACKYARD_TEST_S3 has.

MinIO, Garage, AWS or moto: `STACKYARD_TEST_S3=http://127.0.0.1:9000`. The bucket `stackyard-tests` is created
there if need be. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are used where they are set.
"""

from __future__ import annotations

import contextlib
import os
import uuid

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

__all__ = ["VARIABLE", "new_address"]

VARIABLE = "STACKYARD_TEST_S3"
BUCKET = "stackyard-tests"
# As conftest leaves nothing of the user's credentials in the environment of a test.
_GIVEN = {name: os.environ.get(name, "any") for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}


def new_address(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a new prefix there; skips where no server is named."""
    endpoint = os.environ.get(VARIABLE)
    if not endpoint:
        pytest.skip(f"{VARIABLE} names no S3 server")
    for name, value in _GIVEN.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    with contextlib.suppress(ClientError):
        client.create_bucket(Bucket=BUCKET)
    client.close()
    return f"s3://{BUCKET}/{uuid.uuid4().hex}?endpoint={endpoint}&region=us-east-1"
