"""How to log in to a lab, kept beside its certificate, so that what was made for one start fits the next."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from stackyard.base import directories, files
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import FileError, InvalidInputError, Location

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["StoredLogin", "StoredLoginError", "read_or_create_login"]

_FILE = "login.json"


class StoredLoginError(InvalidInputError):
    """The file with the password and the token of a lab is damaged."""

    code = "E-LAB-LOGIN"
    summary = "The kept login of a lab cannot be used"
    default_remedy = "Remove the file; a new login is made at the next start, and clients must be told."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLogin:
    """The password of root@pam, and the secret of its token."""

    password: str
    token: str

    def __repr__(self) -> str:
        return "StoredLogin()"


def read_or_create_login(folder: Path) -> StoredLogin:
    """Return the login that is kept in a folder; a new one at the first time.

    Raises:
        StoredLoginError: What is kept there is no login.
        FileError: The folder cannot be read or written.
    """
    path = folder / _FILE
    directories.ensure_private(folder)
    if not path.exists():
        new = {"password": secrets.token_urlsafe(12), "token": str(uuid.uuid4())}
        files.make_file(path, orjson.dumps(new))
    try:
        data = path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    try:
        document = parse_json(data)
        return StoredLogin(password=str(document["password"]), token=str(uuid.UUID(document["token"])))
    except (ValueError, TypeError, KeyError) as err:
        raise StoredLoginError(f"{path} holds no login of a lab.", where=Location(str(path))) from err
