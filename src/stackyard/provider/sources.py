"""Where the content of an uploaded file comes from: text, a file on this machine, or a URL."""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import hashlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import aiohttp

from stackyard.base.errors import FileError, UnreachableError
from stackyard.base.http_failures import describe_failure
from stackyard.clients import proxmox
from stackyard.provider.problems import AttributeValueError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

__all__ = ["Content", "Facts", "SourceTrust", "local_facts", "open_file", "raw_content", "url_facts"]

_CHUNK_BYTES = 1024 * 1024
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=60.0)

Content = "Callable[[], BinaryIO]"


class SourceError(UnreachableError):
    """The URL that a file comes from cannot be read."""

    code = "E-PROVIDER-SOURCE"
    summary = "The source of a file cannot be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTrust:
    """How the server of a URL is verified.

    Attributes:
        insecure: Whether any certificate is accepted.
        min_tls: The oldest version of TLS to accept (`1.2`); empty for what Python accepts.
    """

    insecure: bool = False
    min_tls: str = ""

    def context(self) -> ssl.SSLContext | bool:
        """Return what a request takes."""
        if not self.min_tls:
            return not self.insecure
        return proxmox.Trust(verify=not self.insecure, min_tls=proxmox.TlsVersion(self.min_tls)).context()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What tells one version of a source from another."""

    modified: str
    size: int
    tag: str


def raw_content(text: str, *, resize: int) -> Callable[[], BinaryIO]:
    """Return the content of a text, filled up with spaces to a size where one is given.

    Raises:
        AttributeValueError: It is longer than that.
    """
    data = text.encode()
    if resize and len(data) > resize:
        raise AttributeValueError(
            f"The data has {len(data)} bytes, more than the {resize} of `resize`.",
            ("source_raw", 0, "resize"),
        )
    return lambda: io.BytesIO(data.ljust(resize))


@contextlib.asynccontextmanager
async def open_file(
    path: str, *, checksum: str, trust: SourceTrust, temporary: str | None = None
) -> AsyncIterator[Callable[[], BinaryIO]]:
    """Give the content of a file, here or at a URL, for the length of the block.

    Args:
        path: A path or URL.
        checksum: The SHA-256 that it has to have; empty for any.
        trust: How the server of a URL is verified.
        temporary: The folder for what is downloaded; the usual one when absent.

    Raises:
        FileError: It is not there or cannot be read.
        SourceError: The URL cannot be read.
        AttributeValueError: It does not have the checksum that was given.
    """
    with tempfile.TemporaryDirectory(prefix="stackyard-source-", dir=temporary) as folder:
        local = Path(path)
        if _is_url(path):
            local = Path(folder) / "content"
            await _fetch(path, local, trust)
        try:
            with local.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as err:
            raise FileError.from_os_error(err, "read", path) from err
        if checksum and checksum != found:
            raise AttributeValueError(
                f"The SHA-256 of {path} is {found}, not {checksum}.", ("source_file", 0, "checksum")
            )
        yield lambda: local.open("rb")


def local_facts(path: str) -> Facts | None:
    """Return the facts of a file on this machine, or None when it is not there."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    modified = datetime.datetime.fromtimestamp(int(found.st_mtime), datetime.UTC)
    tag = f"{int(found.st_mtime):x}-{found.st_size:x}"
    return Facts(modified=_rfc3339(modified), size=found.st_size, tag=tag)


async def url_facts(url: str, trust: SourceTrust) -> Facts | None:
    """Return the facts that a server tells about a file, or None when it does not answer."""
    try:
        async with (
            _session() as session,
            session.head(url, ssl=trust.context(), allow_redirects=True) as answer,
        ):
            modified = answer.headers.get("Last-Modified", "")
            parsed = (
                email.utils.parsedate_to_datetime(modified).astimezone(datetime.UTC) if modified else None
            )
            tag = answer.headers.get("ETag", "").split('"')
            return Facts(
                modified=_rfc3339(parsed) if parsed else "",
                size=int(answer.headers.get("Content-Length", -1)),
                tag=tag[1] if len(tag) > 1 else "",
            )
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None


def _rfc3339(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_url(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True)


async def _fetch(url: str, target: Path, trust: SourceTrust) -> None:
    try:
        async with _session() as session, session.get(url, ssl=trust.context()) as answer:
            answer.raise_for_status()
            with target.open("wb") as stream:
                async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
                    stream.write(chunk)
    except (aiohttp.ClientError, TimeoutError) as err:
        raise SourceError(f"Cannot read {url}: {describe_failure(err)}.") from err
    except OSError as err:
        raise FileError.from_os_error(err, "write", target) from err
