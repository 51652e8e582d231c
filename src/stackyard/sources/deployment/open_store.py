"""From a place to its store: which credentials open it, and that they are not those of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import extras
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.clients.objects import MemoryObjects, open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.sources.deployment.embedded import EmbeddedStore
from stackyard.sources.deployment.settings import SAME_VARIABLE, BucketAddress, ObjectLocation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.clients.objects.s3 import S3Credentials
    from stackyard.sources.deployment.bucket import BucketStore
    from stackyard.sources.deployment.lease import HeldLease
    from stackyard.sources.deployment.store import Store

__all__ = ["CredentialsError", "open_lease_objects", "open_reader", "open_writer"]

_READ = "S3_"
_WRITE = "S3_WRITE_"
# An object of ten thousand guests has ten megabytes.
_LARGEST_BYTES = 64 * 1024 * 1024
_STATE_KEY = "AWS_ACCESS_KEY_ID"


class CredentialsError(InvalidInputError):
    """The credentials of the object are missing, or are the same that open the state."""

    code = "E-DEPLOYMENT-CREDENTIALS"
    summary = "The object cannot be opened with these credentials"
    default_remedy = (
        "Set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY to credentials that open the bucket of the object and"
        f" nothing else; where one set has to open both: `same_credentials: true`, or {SAME_VARIABLE}=1."
    )


def open_reader(place: ObjectLocation) -> Store:
    """Open the store to read from it.

    Raises:
        CredentialsError: There are no credentials, or only those of the state.
        StoreError: The store cannot be used.
    """
    if isinstance(place.store, BucketAddress):
        return _bucket(place, place.store, _credentials(place, _READ), is_checked=False)
    return _open_embedded(place.store, create=False)


def open_writer(place: ObjectLocation, held: HeldLease) -> Store:
    """Open the store to write to it, which takes the lease.

    The credentials for it (`S3_WRITE_*`, else `S3_*`) are looked at only here.

    Raises:
        UsageError: The lease is not held.
        CredentialsError: There are no credentials, or only those of the state.
        StoreError: The store cannot be used.
    """
    if not held.is_held:
        raise UsageError("The object is written under its lease alone.")
    if isinstance(place.store, BucketAddress):
        has_own = any(name.startswith(_WRITE) for name in place.environ)
        prefix = _WRITE if has_own else _READ
        # Beside the object, the lease has proven that conditions are honoured.
        is_elsewhere = place.settings.lease is not None
        return _bucket(place, place.store, _credentials(place, prefix), is_checked=is_elsewhere)
    return _open_embedded(place.store, create=True)


def open_lease_objects(place: ObjectLocation, *, create: bool = True) -> tuple[Objects, str]:
    """Open where the lease is; return it with the name of the lease.

    Args:
        place: Where the object is.
        create: Whether a store that is not there is made; whoever only looks makes none and writes nothing.

    Raises:
        CredentialsError: There are no credentials, or only those of the state.
        StoreError: The store cannot be used.
    """
    said = place.settings.lease
    where: BucketAddress | Path = place.store
    if said is not None:
        where = BucketAddress.parse(said) if said.startswith("s3://") else place.root / said
    if isinstance(where, BucketAddress):
        # That it honours conditions is proven on the lease itself.
        bucket = _bucket(place, where, _credentials(place, _READ), is_checked=False)
        return bucket.objects, bucket.lease_key
    if create or (where / DATABASE).exists():
        embedded = _open_embedded(where, create=create)
    else:
        embedded = EmbeddedStore(MemoryObjects(), f"the object in {where}")
    return embedded.objects, embedded.lease_key


def _open_embedded(folder: Path, *, create: bool) -> EmbeddedStore:
    return EmbeddedStore(open_objects(folder, create=create), f"the object in {folder}")


def _bucket(
    place: ObjectLocation, address: BucketAddress, credentials: S3Credentials, *, is_checked: bool
) -> BucketStore:
    with extras.needed("s3", "A deployment object in a bucket"):
        from stackyard.clients.objects.s3 import S3Config  # lazy: as above
        from stackyard.clients.objects.versions import VersionedObjects  # lazy: as above
        from stackyard.sources.deployment.bucket import BucketStore  # lazy: only those who use S3 pay for it

    del place
    where = S3Config(
        bucket=address.bucket,
        endpoint_url=address.endpoint,
        region=address.region,
        credentials=credentials,
        largest_bytes=_LARGEST_BYTES,
    )
    return BucketStore(VersionedObjects(where, is_checked=is_checked), address.key, str(address))


def _credentials(place: ObjectLocation, prefix: str) -> S3Credentials:
    with extras.needed("s3", "A deployment object in a bucket"):
        from stackyard.clients.objects.s3 import S3Credentials  # lazy: only those who use S3 pay for it

    env = place.environ
    may_be_same = place.settings.same_credentials or env.get(SAME_VARIABLE, "") not in ("", "0")
    access, secret = _pair(env, prefix)
    state_key = env.get(_STATE_KEY, "")
    if not (access and secret):
        if not may_be_same:
            raise CredentialsError(
                f"{prefix}ACCESS_KEY_ID and {prefix}SECRET_ACCESS_KEY are not both set; those of the state"
                " (AWS_*) are not used for the object."
            )
        access, secret = state_key, env.get("AWS_SECRET_ACCESS_KEY", "")
        if not (access and secret):
            raise CredentialsError("Neither S3_* nor AWS_* credentials are set.")
        return S3Credentials(
            access_key=access, secret_key=secret, session_token=env.get("AWS_SESSION_TOKEN") or None
        )
    if access == state_key and not may_be_same:
        raise CredentialsError(f"{prefix}ACCESS_KEY_ID is the same as {_STATE_KEY}, which opens the state.")
    token = env.get(f"{prefix}SESSION_TOKEN") or None
    return S3Credentials(access_key=access, secret_key=secret, session_token=token)


def _pair(env: Mapping[str, str], prefix: str) -> tuple[str, str]:
    """Return key and secret, in either of the two spellings that are common."""
    access = env.get(f"{prefix}ACCESS_KEY_ID") or env.get(f"{prefix}ACCESS_KEY") or ""
    secret = env.get(f"{prefix}SECRET_ACCESS_KEY") or env.get(f"{prefix}SECRET_KEY") or ""
    return access, secret
