"""Getting files from the web: really, where that stays on this machine, and as a stand-in otherwise.

A lab works without a network. A URL on the machine that runs the lab (a loopback address, `localhost`, an
address of its own) is really fetched, and so is every other one if the lab may fetch it. For the rest
it makes a stand-in: a file of a plausible size without bytes, always the same for one URL, whose checksum is
believed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import mimetypes
import re
import socket
import ssl
import time
import urllib.parse
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from pvelab.server.problems import PveError
from stackyard.base.http_failures import describe_failure, describe_system

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

__all__ = ["Fetcher", "Metadata", "stand_in_size", "url_filename"]

_CHUNK = 1024 * 1024
_TIMEOUT_S = 600.0
# As many as wget follows, and more than any image has.
_MOST_REDIRECTS = 20
_REDIRECTS = (301, 302, 303, 307, 308)
_LARGEST_BYTES = 64 * 2**30
_MIB = 2**20
# The least size of a stand-in and how much more it may have, by what the name says.
_SIZES: Mapping[str, tuple[int, int]] = {
    r"\.(?:img|qcow2|raw|vmdk|ova)(?:\.\w+)?$": (450 * _MIB, 300 * _MIB),
    r"\.iso(?:\.\w+)?$": (600 * _MIB, 1400 * _MIB),
    r"\.tar(?:\.\w+)?$|\.t[gx]z$": (80 * _MIB, 120 * _MIB),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a server says of a file before it sends it."""

    filename: str | None
    size: int | None
    mimetype: str | None


def url_filename(url: str) -> str | None:
    """Return the name of a file by its URL."""
    found = re.fullmatch(r"[^?]+/([^?/]*)(?:\?.*)?", url, re.DOTALL)
    return found[1] if found and found[1] else None


def stand_in_size(url: str) -> int:
    """Return how large the stand-in for a URL is: always the same for one URL."""
    name = url.partition("?")[0].lower()
    least, more = next((sizes for pattern, sizes in _SIZES.items() if re.search(pattern, name)), (_MIB, _MIB))
    return least + zlib.crc32(url.encode()) % (more // 512) * 512


class Fetcher:
    """Fetches files.

    Args:
        anywhere: Whether the lab may ask other machines too.
    """

    def __init__(self, *, anywhere: bool = False) -> None:
        self.anywhere = anywhere

    def is_real(self, url: str) -> bool:
        """Return whether a URL is really fetched."""
        return self.anywhere or _is_here(urllib.parse.urlsplit(url).hostname or "")

    async def head(self, url: str, *, verify: bool = True) -> Metadata:
        """Return what is known of a file before it is fetched.

        Raises:
            PveError: The server does not have it or cannot be reached.
        """
        if not self.is_real(url):
            name = url_filename(url)
            kind = mimetypes.guess_type(name or "")[0] or "application/octet-stream"
            return Metadata(filename=name, size=stand_in_size(url), mimetype=kind)
        try:
            async with self._request("HEAD", url, ssl=verify) as response:
                if response.status != 200:
                    raise PveError(f"invalid server response: '{response.status} {response.reason}'")
                return _metadata(url, response)
        except (aiohttp.ClientError, TimeoutError, ssl.SSLError) as err:
            where = urllib.parse.urlsplit(url).netloc
            text = f"500 Can't connect to {where} ({_reason(err)})"
            raise PveError(f"invalid server response: '{text}'") from err

    async def get(self, url: str, target: Path, *, verify: bool = True) -> int:
        """Fetch a file and return its size.

        Raises:
            PveError: It could not be had; the text is what Proxmox makes of wget's last line.
        """
        try:
            async with self._request("GET", url, ssl=verify) as response:
                if response.status != 200:
                    now = time.strftime("%Y-%m-%d %H:%M:%S")
                    raise PveError(f"download failed: {now} ERROR {response.status}: {response.reason}.")
                size = 0
                with target.open("wb") as stream:
                    async for chunk in response.content.iter_chunked(_CHUNK):
                        size += await asyncio.to_thread(stream.write, chunk)
                        if size > _LARGEST_BYTES:
                            raise PveError(f"download failed: over {_LARGEST_BYTES} bytes.")
                return size
        except aiohttp.ClientSSLError as err:
            host = urllib.parse.urlsplit(url).hostname
            hint = f"To connect to {host} insecurely, use `--no-check-certificate'."
            raise PveError(f"download failed: {hint}") from err
        except (aiohttp.ClientError, TimeoutError, ssl.SSLError) as err:
            where = urllib.parse.urlsplit(url).netloc
            raise PveError(f"download failed: Connecting to {where}... failed: {_reason(err)}.") from err

    @contextlib.asynccontextmanager
    async def _request(self, method: str, url: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for a URL, and for those that it leads to; each has to be one that is really asked.

        A redirect could lead to a service that only this machine reaches, or away from it.

        Raises:
            PveError: A redirect leads elsewhere, or there are too many.
        """
        for _ in range(_MOST_REDIRECTS):
            async with (
                _session(url) as session,
                session.request(method, url, allow_redirects=False, **options) as response,
            ):
                to = response.headers.get("Location")
                if response.status not in _REDIRECTS or to is None:
                    yield response
                    return
                url = self._next(url, to)
        raise PveError(f"download failed: {_MOST_REDIRECTS} redirections exceeded.")

    def _next(self, url: str, to: str) -> str:
        """Return where a redirect leads."""
        try:
            following = urllib.parse.urljoin(url, to)
            parts = urllib.parse.urlsplit(following)
            is_allowed = parts.scheme in ("http", "https") and parts.username is None and bool(parts.hostname)
            is_allowed = is_allowed and (parts.scheme == "https" or not url.startswith("https:"))
            # A server elsewhere has no business with what this machine serves to itself.
            from_here = _is_here(urllib.parse.urlsplit(url).hostname or "")
            is_allowed = is_allowed and (from_here or not _is_here(parts.hostname or ""))
        except ValueError:
            is_allowed = False
        if not is_allowed or not self.is_real(following):
            raise PveError("download failed: a redirect leads to an address that the lab does not ask.")
        return following


def _session(url: str) -> aiohttp.ClientSession:
    # A proxy of the environment is for other machines; this one is asked directly.
    elsewhere = not _is_here(urllib.parse.urlsplit(url).hostname or "")
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    return aiohttp.ClientSession(timeout=timeout, trust_env=elsewhere, headers={"User-Agent": "Proxmox VE"})


def _metadata(url: str, response: aiohttp.ClientResponse) -> Metadata:
    disposition = response.headers.get("Content-Disposition", "")
    named = re.search(r'filename="([^"]*)"', disposition) or re.search(r"filename=([^;]*)", disposition)
    length = response.headers.get("Content-Length", "")
    return Metadata(
        filename=named[1] if named else url_filename(url),
        size=int(length) if length.isdecimal() and int(length) else None,
        mimetype=response.headers.get("Content-Type", "").partition(";")[0] or None,
    )


def _reason(err: Exception) -> str:
    cause = getattr(err, "os_error", None)
    if isinstance(err, TimeoutError):
        return "Connection timed out"
    if isinstance(cause, ConnectionRefusedError):
        return "Connection refused"
    return describe_system(cause) if isinstance(cause, OSError) else describe_failure(err)


def _is_here(host: str) -> bool:
    """Tell whether a host is the machine that runs the lab; names other than localhost are not looked up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_loopback:
        return True
    if address.is_multicast:
        return False
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
