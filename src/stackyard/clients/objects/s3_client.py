"""Where a store in S3 is, and a client of boto3 for it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import boto3  # type: ignore[import-untyped]
import botocore.loaders  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from stackyard.clients.objects.base import StoreError

__all__ = ["S3Config", "S3Credentials", "make_client"]

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Credentials:
    """Who we are to a store; its representation shows nothing secret."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Config:
    """Where the objects are, and how to get there.

    Credentials come from where every S3 program looks for them (AWS_ACCESS_KEY_ID, AWS_PROFILE, the role of
    the machine), unless the place brings its own; they never are in an address.

    Attributes:
        bucket: The bucket, which must exist.
        prefix: What comes before each key in it, without a slash at the end.
        endpoint_url: The address of a store that is not AWS; None also reads AWS_ENDPOINT_URL_S3.
        region: The region; None reads AWS_REGION, and is us-east-1 where nothing says otherwise.
        connect_timeout_s: How long a connection may take.
        read_timeout_s: How long an answer may take.
        attempts: How often a request is made in all before the store counts as unreachable.
        credentials: Who we are there; nothing of the surroundings is used besides them.
        largest_bytes: A larger object is not ours, and is not read.
        profile: The profile in the files of AWS; None reads AWS_PROFILE.
    """

    bucket: str
    prefix: str = ""
    endpoint_url: str | None = None
    region: str | None = None
    connect_timeout_s: float = 3.0
    read_timeout_s: float = 20.0
    attempts: int = 3
    credentials: S3Credentials | None = None
    largest_bytes: int = 1024 * _MIB
    profile: str | None = None


def _session_keys(own: S3Credentials) -> dict[str, str | None]:
    return {
        "aws_access_key_id": own.access_key,
        "aws_secret_access_key": own.secret_key,
        "aws_session_token": own.session_token,
    }


@functools.cache
def _models() -> Any:
    """Return what reads the description of S3's calls: once for all clients, because it costs 100 ms."""
    return botocore.loaders.create_loader()


def make_client(place: S3Config, *, service: str = "s3") -> Any:
    """Return a client of boto3 for a place.

    Args:
        place: Where it is.
        service: Which service of AWS, as boto3 names it.

    Raises:
        StoreError: What is set in the environment or the address cannot be used.
    """
    config = Config(
        connect_timeout=place.connect_timeout_s,
        read_timeout=place.read_timeout_s,
        # We repeat requests ourselves: a repeated write must first look whether the first one arrived.
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=64,
        s3={"addressing_style": "path" if place.endpoint_url else "auto"},
        # A checksum of every body is what a store that is not AWS may not understand.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    own = place.credentials
    keys = {} if own is None else _session_keys(own)
    try:
        core = botocore.session.Session(profile=place.profile)
        core.register_component("data_loader", _models())
        session = boto3.session.Session(botocore_session=core, region_name=place.region, **keys)
        region = place.region or session.region_name or "us-east-1"
        return session.client(service, endpoint_url=place.endpoint_url, region_name=region, config=config)
    except (BotoCoreError, ValueError) as err:
        raise StoreError(f"The S3 store cannot be used: {err}.") from err
