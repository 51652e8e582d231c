"""The configuration of the engine's own S3 backend, and the way out of its DynamoDB lock.

`use_lockfile` locks with an object in the bucket and needs nothing else. While some clients still lock with a
DynamoDB table alone, both locks are taken; once every client has the new configuration, the table is dropped
in a step of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import InvalidInputError, Location, UsageError

__all__ = [
    "BackendFileError",
    "S3Backend",
    "drop_dynamodb",
    "render_hcl",
    "render_json",
]

_TABLE = "dynamodb_table"
_LOCKFILE = "use_lockfile"
_TABLE_LINE = re.compile(rf'^[ \t]*{_TABLE}[ \t]*=[ \t]*"[^"\n]*"[ \t]*(#[^\n]*|//[^\n]*)?\n?', re.MULTILINE)
_LOCKFILE_LINE = re.compile(rf"^[ \t]*{_LOCKFILE}[ \t]*=[ \t]*true\b", re.MULTILINE)
# What the backend would ask AWS, and another store cannot answer.
_NOT_AWS = {
    "skip_credentials_validation": True,
    "skip_metadata_api_check": True,
    "skip_region_validation": True,
    "skip_requesting_account_id": True,
    "use_path_style": True,
}


class BackendFileError(InvalidInputError):
    """The DynamoDB table cannot be dropped from a file: it names none, or nothing else would lock."""

    code = "E-STATE-BACKEND"
    summary = "The configuration of the S3 backend is not what it should be"
    default_remedy = "Render it again with `stackyard state backend render`."


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Backend:
    """What the configuration says.

    Attributes:
        bucket: The bucket.
        key: The object of the state.
        region: The region.
        endpoint: The address of a store that is not AWS.
        dynamodb_table: The table that older clients lock with, as long as there are any.
        encrypt: Whether the store is asked to encrypt the object.
    """

    bucket: str
    key: str
    region: str = "us-east-1"
    endpoint: str | None = None
    dynamodb_table: str | None = None
    encrypt: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the backend, in the order in which they are written.

        Raises:
            UsageError: The names make no sense.
        """
        if not self.bucket or not self.key or self.key.startswith("/") or self.key.endswith("/"):
            raise UsageError("A bucket and a key such as prod/network/terraform.tfstate are needed.")
        found: dict[str, Any] = {"bucket": self.bucket, "key": self.key, "region": self.region}
        if self.encrypt:
            found["encrypt"] = True
        found[_LOCKFILE] = True
        if self.dynamodb_table:
            found[_TABLE] = self.dynamodb_table
        if self.endpoint:
            found |= {"endpoints": {"s3": self.endpoint}, **_NOT_AWS}
        return found


def render_json(backend: S3Backend) -> str:
    """Return the configuration as OpenTofu JSON (`backend.tf.json`)."""
    document = {"terraform": {"backend": {"s3": backend.settings()}}}
    return json.dumps(document, indent=2) + "\n"


def render_hcl(backend: S3Backend) -> str:
    """Return the configuration as OpenTofu code (`backend.tf`)."""
    lines = ["terraform {", '  backend "s3" {']
    settings = backend.settings()
    width = max(map(len, settings))
    for name, value in settings.items():
        if name == _TABLE:
            lines.append("    # Until every client has this file: `stackyard state backend drop-dynamodb`.")
        lines.append(f"    {name.ljust(width)} = {_hcl(value)}")
    return "\n".join([*lines, "  }", "}", ""])


def drop_dynamodb(text: str, path: str) -> str:
    """Return a configuration without the DynamoDB table; the lock in the bucket must be there.

    Args:
        text: The file: OpenTofu code, OpenTofu JSON or partial configuration (`-backend-config`).
        path: What it is called.

    Raises:
        BackendFileError: It has no table, several, or no lock in the bucket.
    """
    return _drop_json(text, path) if path.endswith(".json") else _drop_hcl(text, path)


def _drop_hcl(text: str, path: str) -> str:
    tables = _TABLE_LINE.findall(text)
    _require(path, tables=len(tables), has_lockfile=bool(_LOCKFILE_LINE.search(text)))
    rest = _TABLE_LINE.sub("", text)
    return re.sub(r"^[ \t]*# Until every client has this file:[^\n]*\n", "", rest, flags=re.MULTILINE)


def _drop_json(text: str, path: str) -> str:
    try:
        document = parse_json(text)
        backend = document["terraform"]["backend"]["s3"]
    except (ValueError, KeyError, TypeError) as err:
        raise BackendFileError(f"{path} holds no S3 backend.", where=Location(path)) from err
    _require(path, tables=int(_TABLE in backend), has_lockfile=backend.get(_LOCKFILE) is True)
    del backend[_TABLE]
    return json.dumps(document, indent=2) + "\n"


def _require(path: str, *, tables: int, has_lockfile: bool) -> None:
    if tables != 1:
        how_many = "no" if not tables else "more than one"
        raise BackendFileError(
            f"{path} names {how_many} {_TABLE}.",
            where=Location(path),
            remedy="There is nothing to drop." if not tables else "Leave one backend in the file.",
        )
    if not has_lockfile:
        raise BackendFileError(
            f"{path} does not set {_LOCKFILE} = true: without the table nothing would be locked.",
            where=Location(path),
        )


def _hcl(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_hcl(item)}" for name, item in value.items()) + " }"
    if isinstance(value, bool):
        return "true" if value else "false"
    # In HCL a text may hold expressions; these two would begin one.
    return json.dumps(value, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
