"""What an image factory is asked for."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.http_failures import describe_failure
from stackyard.clients.factory.failures import (
    FactoryAnswerError,
    FactoryError,
    FactorySlowError,
    ImageContentError,
    ImageIncompleteError,
    SchematicIdError,
    SchematicUnknownError,
)
from stackyard.clients.factory.transport import FactoryLimits, Transport, read_body
from stackyard.talosapi.schematic import canonical_yaml, schematic_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.talosapi.schematic import Schematic

__all__ = ["FactoryClient", "ImageDigest"]

_CHUNK_BYTES = 256 * 2**10
# By the ending of an address: where an image has bytes by which it is known, and which.
_MARKS = {
    ".iso": (32 * 2**10 + 1, b"CD001"),
    ".qcow2": (0, b"QFI\xfb"),
    ".xz": (0, b"\xfd7zXZ\x00"),
    ".zst": (0, b"\x28\xb5\x2f\xfd"),
}
_PAGES = ("text/html", "application/xhtml+xml", "application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDigest:
    """What was downloaded.

    Attributes:
        sha256: Its SHA-256, in hexadecimal.
        size: Its size in bytes.
    """

    sha256: str
    size: int


class FactoryClient:
    """A client of one image factory; use it in an `async with` block.

    Args:
        base: The address of the factory: `https://factory.talos.dev`, or a mirror with a port and a path.
        limits: What a request may take.
    """

    def __init__(self, base: str, limits: FactoryLimits = FactoryLimits()) -> None:  # noqa: B008 - frozen
        self._base = base.rstrip("/")
        self._limits = limits
        self._transport = Transport(self._base, limits)

    async def __aenter__(self) -> FactoryClient:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    async def post_schematic(self, schematic: Schematic) -> str:
        """Register a schematic, which may be there already; return its id.

        Raises:
            SchematicIdError: The factory gives it another id than the one that follows from it.
            FactoryError: The factory cannot be reached, or refuses it.
        """
        body = canonical_yaml(schematic).encode()
        answer = await self._read_json("POST", "/schematics", body=body)
        given = answer.get("id") if isinstance(answer, dict) else None
        computed = schematic_id(schematic)
        if given != computed:
            raise SchematicIdError(
                f"{self._base} gives the schematic the id {str(given)[:80]}, and computed from its content "
                f"it is {computed}."
            )
        return computed

    async def has_image(self, url: str) -> bool:
        """Return whether the factory has an image, or builds it.

        Raises:
            ImageContentError: A page answers in its place.
            FactoryError: The factory cannot be reached, or refuses the request.
        """
        try:
            async with self._transport.request("HEAD", url) as response:
                _refuse_page(url, response)
                return True
        except SchematicUnknownError:
            return False

    async def list_versions(self) -> tuple[str, ...]:
        """Return the versions of Talos that the factory has: `v1.12.1`.

        Raises:
            FactoryError: The factory cannot be reached, or answers something else.
        """
        answer = await self._read_json("GET", "/versions")
        if not isinstance(answer, list) or not all(isinstance(one, str) for one in answer):
            raise FactoryError(f"{self._base}/versions answers no list of versions.")
        return tuple(answer)

    async def list_extensions(self, version: str) -> tuple[str, ...]:
        """Return the names of the official extensions for a version, with or without `v`.

        Raises:
            FactoryError: The factory cannot be reached, or answers something else.
        """
        path = f"/version/v{version.removeprefix('v')}/extensions/official"
        answer = await self._read_json("GET", path)
        if not isinstance(answer, list) or not all(
            isinstance(one, dict) and isinstance(one.get("name"), str) for one in answer
        ):
            raise FactoryError(f"{self._base}{path} answers no list of extensions.")
        return tuple(one["name"] for one in answer)

    async def download(
        self, url: str, on_chunk: Callable[[bytes, int | None], None] | None = None
    ) -> ImageDigest:
        """Receive an image piece by piece; nothing of it is kept here.

        Args:
            url: Its address.
            on_chunk: Called with each piece, and with the size of the whole where that is announced.

        Raises:
            ImageIncompleteError: It was cut off, or its size is not the announced one.
            ImageContentError: It is no image.
            FactorySlowError: It stalled, or took too long as a whole.
            FactoryError: The factory cannot be reached, or refuses the request.
        """
        download = _Download(url, self._limits.largest_bytes)
        try:
            async with (
                asyncio.timeout(self._limits.total_s),
                self._transport.request("GET", url) as response,
            ):
                download.begin(response)
                chunks = response.content.iter_chunked(_CHUNK_BYTES)
                while True:
                    async with asyncio.timeout(self._limits.stall_s) as stall:
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    download.add(chunk)
                    if on_chunk is not None:
                        on_chunk(chunk, download.total)
        except TimeoutError as err:
            is_stalled = download.is_begun and stall.expired()
            waited = (
                f"sent nothing for {self._limits.stall_s:g} seconds"
                if is_stalled
                else f"took more than {self._limits.total_s:g} seconds"
            )
            raise FactorySlowError(f"{url} {waited}, after {download.amount}.") from err
        except (aiohttp.ClientError, OSError) as err:
            raise ImageIncompleteError(
                f"{url} was cut off after {download.amount}: {describe_failure(err)}."
            ) from err
        return download.finish()

    async def _read_json(self, method: str, path: str, *, body: bytes | None = None) -> Any:
        url = f"{self._base}{path}"
        try:
            async with self._transport.request(method, url, body=body) as response:
                data = await read_body(response)
        except (aiohttp.ClientError, OSError) as err:
            raise FactoryError(f"The answer to {method} {url} was cut off: {describe_failure(err)}.") from err
        try:
            return parse_json(data)
        except JsonError as err:
            raise FactoryAnswerError(f"{url} does not answer with JSON: it is no image factory.") from err


def _refuse_page(url: str, response: aiohttp.ClientResponse) -> None:
    if response.content_type in _PAGES:
        raise ImageContentError(f"{url} answers with {response.content_type}, not with an image.")
    place, mark = _find_mark(url)
    # Servers that say 0 to a question for the head of an answer mean that they do not know.
    if 0 < (response.content_length or 0) < place + len(mark):
        raise ImageContentError(f"{url} has {response.content_length} bytes, which is no image.")


def _find_mark(url: str) -> tuple[int, bytes]:
    """Return where an image has bytes by which it is known, and which."""
    ending = url.partition("?")[0]
    return next((mark for end, mark in _MARKS.items() if ending.endswith(end)), (0, b""))


class _Download:
    """What came of an image so far."""

    def __init__(self, url: str, largest_bytes: int) -> None:
        self.total: int | None = None
        self.is_begun = False
        self._url = url
        self._largest = largest_bytes
        self._size = 0
        self._hash = hashlib.sha256()
        self._start = bytearray()
        self._place, self._mark = _find_mark(url)

    @property
    def amount(self) -> str:
        """How much came, in words."""
        return f"{self._size} bytes" if self.total is None else f"{self._size} of {self.total} bytes"

    def begin(self, response: aiohttp.ClientResponse) -> None:
        self.is_begun = True
        self.total = response.content_length
        _refuse_page(self._url, response)
        if self.total is not None and self.total > self._largest:
            raise ImageContentError(f"{self._url} has {self.total} bytes, which no image has.")

    def add(self, chunk: bytes) -> None:
        wanted = self._place + len(self._mark)
        if len(self._start) < wanted:
            self._start += chunk[: wanted - len(self._start)]
            if len(self._start) == wanted and self._start[self._place :] != self._mark:
                raise ImageContentError(f"{self._url} is not what its ending says: its first bytes differ.")
        self._hash.update(chunk)
        self._size += len(chunk)
        if self._size > self._largest:
            raise ImageContentError(f"{self._url} is larger than {self._largest} bytes, as no image is.")

    def finish(self) -> ImageDigest:
        if self.total is not None and self._size != self.total:
            raise ImageIncompleteError(f"{self._url} ended after {self.amount}.")
        if len(self._start) < self._place + len(self._mark) or not self._size:
            raise ImageContentError(f"{self._url} has {self._size} bytes, which is no image.")
        return ImageDigest(sha256=self._hash.hexdigest(), size=self._size)
