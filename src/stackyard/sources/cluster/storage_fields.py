"""The section `storage` of `bootstrap.yaml`: the datasets that a cluster needs on a TrueNAS."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stackyard.desired.values import Line, Many, Value

__all__ = ["DatasetFields", "StorageFields", "parse_size"]

_SIZE = re.compile(r"(\d{1,6})([GT])")
_UNITS = {"G": 2**30, "T": 2**40}
_SHA256 = re.compile(r"[0-9A-F]{64}")


def parse_size(text: str) -> int:
    """Return the bytes of a size: `500G`, `2T`; `0` for no limit.

    Raises:
        ValueError: It is none, or less than TrueNAS takes.
    """
    if text == "0":
        return 0
    found = _SIZE.fullmatch(text)
    if found is None or not int(found[1]):
        raise ValueError("write a size in whole GiB or TiB, as 500G or 2T, or 0 for no limit")
    return int(found[1]) * _UNITS[found[2]]


def _size(text: str) -> str:
    parse_size(text)
    return text


def _fingerprint(text: str) -> str:
    digits = text.replace(":", "").upper()
    if not _SHA256.fullmatch(digits):
        raise ValueError("a fingerprint is the SHA-256 of a certificate: 64 hexadecimal digits")
    return digits


DatasetName = Annotated[
    Line, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.:-]*(/[A-Za-z0-9][A-Za-z0-9_.:-]*)+$", max_length=200)
]
Quota = Annotated[str, AfterValidator(_size)]
Compression = Annotated[str, Field(pattern=r"^[A-Z0-9]+(-[A-Z0-9]+)*$", max_length=20)]
RecordSize = Annotated[str, Field(pattern=r"^(512|[1-9][0-9]{0,2}K|[1-9][0-9]?M)$")]
Address = Annotated[Line, Field(pattern=r"^https://[^/@?#\s]+/?$")]
Fingerprint = Annotated[str, AfterValidator(_fingerprint)]


class DatasetFields(Value):
    """A dataset, and the properties that it is to have; what is not said is inherited."""

    name: Annotated[DatasetName, Field(description="Its full name: `tank/k8s`. Its parent has to be there.")]
    quota: Annotated[
        Quota | None,
        Field(description="ZFS quota of it with its children and snapshots: `500G`, `2T`, or 0."),
    ] = None
    compression: Annotated[Compression | None, Field(description="`LZ4`, `ZSTD`, `OFF`, ...")] = None
    sync: Annotated[
        Literal["STANDARD", "ALWAYS", "DISABLED"] | None, Field(description="When writes are on disk.")
    ] = None
    recordsize: Annotated[RecordSize | None, Field(description="`128K`, `1M`, ...")] = None
    atime: Annotated[
        Literal["ON", "OFF"] | None, Field(description="Whether the time of a read is kept.")
    ] = None
    comment: Annotated[Line | None, Field(description="A text for people.")] = None
    update: Annotated[
        bool,
        Field(description="Change properties of a dataset that is there; else a difference is an error."),
    ] = False


def _distinct(datasets: tuple[DatasetFields, ...]) -> tuple[DatasetFields, ...]:
    names = [one.name for one in datasets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)} is there more than once")
    return datasets


class StorageFields(Value):
    """A TrueNAS, and the datasets that have to be there before the cluster."""

    truenas: Annotated[Address, Field(description="The address: `https://nas.lan`.")]
    user: Annotated[
        Line | None, Field(description="The user whose key it is; TrueNAS 27 and later need the name.")
    ] = None
    fingerprint: Annotated[
        Fingerprint | None, Field(description="The SHA-256 of its certificate, where no CA signed it.")
    ] = None
    authority: Annotated[Line | None, Field(description="A file with the CA certificate, in PEM.")] = None
    datasets: Annotated[
        Many[DatasetFields],
        Field(min_length=1, description="The datasets; a parent comes before its children."),
        AfterValidator(_distinct),
    ]
