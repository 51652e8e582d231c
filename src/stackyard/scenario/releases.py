"""Images that were released: downloaded with resume, put together from their parts, and checked."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import string
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from stackyard.base import files
from stackyard.base.errors import FileError, StackyardError, UnreachableError
from stackyard.base.http_failures import describe_failure
from stackyard.scenario.sums import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stackyard.base.events import Step

__all__ = ["IMAGES_URL", "IMAGES_VARIABLE", "ReleaseError", "ReleaseUnreachableError", "ReleasedImages"]

IMAGES_URL = "https://github.com/homestak-dev/packer/releases/download"
IMAGES_VARIABLE = "STACKYARD_IMAGES_URL"

_SUMS = "SHA256SUMS"
_SUM_LINE = re.compile(r"([0-9a-fA-F]{64})(?: [ *](\S+))?")
_CHUNK_BYTES = 256 * 1024
_LARGEST_SUMS_BYTES = 1024 * 1024
_ATTEMPTS = 4
_PAUSE_S = 0.2
_READABLE = 0o644


class ReleaseError(StackyardError):
    """An image of a release is not there, has parts missing, or is not the file that was published."""

    code = "E-IMAGE-RELEASE"
    summary = "An image cannot be taken from its release"
    default_remedy = "Check the release (--packer-release) and the name of the image."


class ReleaseUnreachableError(UnreachableError):
    """The server of the releases does not answer, or stopped in the middle, more than once."""

    code = "E-IMAGE-UNREACHABLE"
    summary = "The server of the images does not answer"
    default_remedy = "Run the command again: it resumes the download."


class _TruncatedBody(Exception):  # noqa: N818 -- not an error: a reason to go on from there
    """The body ended too early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedImages:
    """The images of a release on a server of plain files.

    Attributes:
        tag: The release.
        base_url: What is above the folders of the releases; `STACKYARD_IMAGES_URL`, else homestak's own.
        stall_s: How long the server may send nothing.
    """

    tag: str
    base_url: str | None = None
    stall_s: float = 60.0

    def _folder(self) -> URL:
        with contextlib.suppress(ValueError):
            address = URL(self.base_url or os.environ.get(IMAGES_VARIABLE) or IMAGES_URL)
            if address.scheme in {"http", "https"} and address.host:
                return address / self.tag
        # Not quoted: it may hold a password.
        raise ReleaseError(f"{IMAGES_VARIABLE} does not hold an http or https address.")

    async def fetch(self, file_name: str, folder: Path, step: Step) -> Path:
        """Download an image into a folder, or find it there, and return the file.

        What came of it before a failure stays beside it, and the next call continues from there.

        Raises:
            ReleaseError: It is not there, a part is missing, or its checksum is not the published one.
            ReleaseUnreachableError: The server does not answer.
            FileError: The file cannot be written.
        """
        target = folder / file_name
        timeout = aiohttp.ClientTimeout(total=None, connect=15.0, sock_read=self.stall_s)
        try:
            _make_folder(folder)
            # The environment names the user's proxy, if there is one.
            async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
                download = _Download(session, self._folder(), step)
                sums = await download.sums(file_name)
                if await hash_of(target) == sums[file_name]:
                    return target
                await download.download(file_name, target, sums)
        except OSError as err:
            raise FileError.from_os_error(err, "write", target) from err
        return target


@dataclass(slots=True)
class _Download:
    session: aiohttp.ClientSession
    folder: URL
    step: Step

    async def sums(self, file_name: str) -> dict[str, str]:
        """Return the published sums: of the file, and of its parts where they are listed."""
        for name in (_SUMS, f"{file_name}.sha256"):
            text = await self._text(name)
            found = {} if text is None else dict(_read_sums(text, file_name))
            if file_name in found:
                return found
        raise ReleaseError(
            f"{_format_url(self.folder)} has no checksum of {file_name} ({_SUMS} or {file_name}.sha256): "
            f"what cannot be checked is not used."
        )

    async def download(self, file_name: str, target: Path, sums: Mapping[str, str]) -> None:
        """Download a file or all of its parts, and put it in its place once its sum is right."""
        partial = target.with_name(f"{file_name}.partial")
        listed = sorted(name for name in sums if re.fullmatch(re.escape(file_name) + r"\.part[a-z]{2}", name))
        is_whole = not listed and await self._get(file_name, partial)
        if not is_whole:
            await self._download_parts(file_name, partial, listed, sums)
        actual = await hash_of(partial)
        if actual != sums[file_name]:
            partial.unlink()
            raise ReleaseError(
                f"{file_name} of {_format_url(self.folder)} is not the file that was published: its SHA-256 "
                f"is {actual}, and the published one is {sums[file_name]}."
                + ("" if is_whole else " It was put together from parts: one may be missing.")
            )
        partial.replace(target)
        for part in target.parent.glob(f"{file_name}.part??"):
            part.unlink()

    async def _download_parts(
        self, file_name: str, partial: Path, listed: list[str], sums: Mapping[str, str]
    ) -> None:
        """Download the parts and put them together: those that are listed, or all that there are."""
        parts: list[Path] = []
        for name in listed or _part_names(file_name):
            part = partial.with_name(name)
            if not await self._get(name, part):
                if listed or not parts:
                    what = f"the part {name}" if listed else f"neither {file_name} nor parts of it"
                    raise ReleaseError(
                        f"{_format_url(self.folder)} has {what if not listed else f'no {what[4:]}'}."
                    )
                break
            if name in sums and (actual := await hash_of(part)) != sums[name]:
                part.unlink()
                raise ReleaseError(
                    f"{name} is not the part that was published: its SHA-256 is {actual}, and the published "
                    f"one is {sums[name]}."
                )
            parts.append(part)
        await asyncio.to_thread(_join, parts, partial)

    async def _text(self, name: str) -> str | None:
        received = bytearray()
        for attempt in itertools.count(1):
            received.clear()
            try:
                async with self.session.get(self.folder / name) as response:
                    if response.status == HTTPStatus.NOT_FOUND:
                        return None
                    _require_ok(response, self.folder / name)
                    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                        received += chunk
                        if len(received) > _LARGEST_SUMS_BYTES:
                            raise ReleaseError(
                                f"{_format_url(self.folder / name)} is too large for a list of sums."
                            )
                return received.decode(errors="replace")
            except (aiohttp.ClientError, OSError, TimeoutError) as err:
                await self._wait_before_retry(name, attempt, err)
        raise AssertionError("a count does not end")

    async def _get(self, name: str, target: Path) -> bool:
        """Download a file, resuming where an earlier attempt ended; return whether it is there."""
        for attempt in itertools.count(1):
            try:
                return await self._attempt(name, target)
            except (aiohttp.ClientError, _TruncatedBody, TimeoutError, ConnectionError) as err:
                await self._wait_before_retry(name, attempt, err)
        raise AssertionError("a count does not end")

    async def _wait_before_retry(self, name: str, attempt: int, err: Exception) -> None:
        reason = describe_failure(err)
        if attempt >= _ATTEMPTS:
            raise ReleaseUnreachableError(f"{_format_url(self.folder / name)}: {reason}.") from err
        self.step.log(f"{name}: {reason}; resuming")
        await asyncio.sleep(_PAUSE_S * 2**attempt)

    async def _attempt(self, name: str, target: Path) -> bool:
        done = _size(target)
        headers = {"Range": f"bytes={done}-"} if done else {}
        async with self.session.get(self.folder / name, headers=headers) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                return False
            if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                # All of it is here already, or more than all: its sum will tell.
                return True
            _require_ok(response, self.folder / name)
            is_rest = response.status == HTTPStatus.PARTIAL_CONTENT
            done = done if is_rest else 0
            length = response.content_length
            total = None if length is None else done + length
            with files.open_file(target, mode=_READABLE, is_appended=is_rest) as stream:
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    done += stream.write(chunk)
                    self.step.progressed(done, total, "bytes")
            if total is not None and done < total:
                raise _TruncatedBody(f"only {done} of {total} bytes came")
        return True


def _require_ok(response: aiohttp.ClientResponse, url: URL) -> None:
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ReleaseUnreachableError(f"{_format_url(url)} answered {response.status} {response.reason}.")
    if response.status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        raise ReleaseError(f"{_format_url(url)} answered {response.status} {response.reason}.")


def _format_url(url: URL) -> str:
    return str(url.with_user(None))


def _read_sums(text: str, file_name: str) -> Iterator[tuple[str, str]]:
    """Return the sums of a list; one without a name is that of the file itself."""
    for line in text.splitlines():
        match = _SUM_LINE.fullmatch(line.strip())
        if match:
            yield (match[2] or file_name).rpartition("/")[2], match[1].lower()


def _part_names(file_name: str) -> Iterator[str]:
    """Return the names that `split` gives to parts."""
    for first, second in itertools.product(string.ascii_lowercase, repeat=2):
        yield f"{file_name}.part{first}{second}"


def _size(path: Path) -> int:
    """Return how much of a file is there."""
    return path.stat().st_size if path.exists() else 0


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _join(parts: list[Path], target: Path) -> None:
    with files.open_file(target, mode=_READABLE) as stream:
        for part in parts:
            with part.open("rb") as source:
                while chunk := source.read(_CHUNK_BYTES):
                    stream.write(chunk)
