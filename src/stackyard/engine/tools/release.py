"""The first way: what the project releases, checked against its published SHA-256 sums."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import platform
import re
import sys
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

import aiohttp
from yarl import URL

from stackyard.base import events
from stackyard.base.http_failures import describe_failure
from stackyard.engine.tools.archive import ARCHIVE_ENDINGS, extract_program
from stackyard.engine.tools.methods import ToolReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stackyard.base.events import Emit, Step
    from stackyard.engine.version import Version

__all__ = ["TOFU_RELEASES", "HttpTimeouts", "ReleaseArchive", "Releases", "platform_name"]

_CHUNK_BYTES = 256 * 1024
_LARGEST_SUMS_BYTES = 1024 * 1024
_LARGEST_ARCHIVE_BYTES = 1024 * 1024 * 1024
_SUM = re.compile(r"[0-9a-fA-F]{64}")
_SUM_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](\S+)")
_ARCHITECTURES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv6l": "arm",
    "armv7l": "arm",
    "i386": "386",
    "i686": "386",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTimeouts:
    """How long to wait for a server.

    Attributes:
        connect_s: For a connection: the name, the address, the handshake.
        stall_s: For the next bytes on a connection that is there.
    """

    connect_s: float = 15.0
    stall_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Where a project releases a program, and what its files are called.

    Attributes:
        program: The name of the program, in an archive as well.
        url: What is above the folders of the versions.
        variable: The name of the setting with the address of a mirror.
        file: The name of the file, with `{version}`, `{system}` and `{architecture}`: an archive or the
            program itself. It may be in folders below that of the version.
        sums: The name of the file with its SHA-256, with `{version}` and `{file}`.
    """

    program: str
    url: str
    variable: str
    file: str
    sums: str


TOFU_RELEASES = Releases(
    program="tofu",
    url="https://github.com/opentofu/opentofu/releases/download",
    variable="STACKYARD_RELEASES_URL",
    file="tofu_{version}_{system}_{architecture}.zip",
    sums="tofu_{version}_SHA256SUMS",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseArchive:
    """Gets a program as its project releases it.

    Attributes:
        base_url: What is above the folders of the versions; the mirror of the settings, else the project's.
        patience: How long to wait for the server.
        releases: Where the program is released.
    """

    base_url: str | None = None
    patience: HttpTimeouts = HttpTimeouts()
    releases: Releases = TOFU_RELEASES

    @property
    def title(self) -> str:
        """The way in words."""
        return "the release archive"

    async def provide(self, version: Version, folder: Path, emit: Emit) -> Path:
        """Download, check and unpack the archive; see `Way.provide`."""
        releases = self.releases
        base = self._address() / f"v{version}"
        system, architecture = platform_name().split("_")
        file = releases.file.format(version=version, system=system, architecture=architecture)
        path, file = file, PurePosixPath(file).name
        downloaded, program = folder / f"{file}.part", folder / releases.program
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self.patience.connect_s, sock_read=self.patience.stall_s
        )
        with events.step(emit, f"tools.{releases.program}.release", f"Download {file}") as step:
            # The environment names the user's proxy, if there is one.
            async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
                step.waiting(f"an answer from {base.host}")
                sums = await _fetch_text(session, base / releases.sums.format(version=version, file=path))
                published = _read_published_sum(sums, file)
                actual = await _download(session, base / path, downloaded, step)
            if actual != published:
                raise ToolReleaseError(
                    f"{file} is not the file that was published: its SHA-256 is {actual}, "
                    f"and the published one is {published}."
                )
            if file.endswith(ARCHIVE_ENDINGS):
                await _unpack(downloaded.rename(folder / file), program, step)
            else:
                downloaded.rename(program)
        return program

    def _address(self) -> URL:
        text = self.base_url or os.environ.get(self.releases.variable) or self.releases.url
        with contextlib.suppress(ValueError):
            address = URL(text)
            if address.scheme in {"http", "https"} and address.host:
                return address
        # Not quoted: it may hold a password.
        raise ToolReleaseError(f"{self.releases.variable} does not hold an http or https address.")


def platform_name() -> str:
    """Return this machine as release archives spell it, such as `linux_amd64`.

    Raises:
        ToolReleaseError: There is no archive for such a machine.
    """
    system = re.match(r"linux|darwin|freebsd|openbsd|solaris", sys.platform)
    architecture = _ARCHITECTURES.get(platform.machine().lower())
    if system is None or architecture is None:
        raise ToolReleaseError(f"No archive is released for {sys.platform} on {platform.machine()}.")
    return f"{system[0]}_{architecture}"


def _read_published_sum(sums: str, archive_name: str) -> str:
    for line in sums.splitlines():
        # A file beside the program may have its sum alone.
        if sums.strip() == line.strip() and _SUM.fullmatch(line.strip()):
            return line.strip().lower()
        match = _SUM_LINE.fullmatch(line.strip())
        if match and match[2] == archive_name:
            return match[1].lower()
    raise ToolReleaseError(f"The published sums have no line for {archive_name}.")


async def _fetch_text(session: aiohttp.ClientSession, url: URL) -> str:
    received = bytearray()
    await _receive(session, url, _LARGEST_SUMS_BYTES, lambda chunk, _: received.extend(chunk))
    return received.decode(errors="replace")


async def _download(session: aiohttp.ClientSession, url: URL, target: Path, step: Step) -> str:
    """Write a file as it comes, and return its SHA-256."""
    digest, done = hashlib.sha256(), 0
    with _new_file(target) as stream:

        def keep(chunk: bytes, total: int | None) -> None:
            nonlocal done
            digest.update(chunk)
            done += stream.write(chunk)
            step.progressed(done, total, "bytes")

        await _receive(session, url, _LARGEST_ARCHIVE_BYTES, keep)
    return digest.hexdigest()


def _new_file(target: Path) -> BinaryIO:
    return target.open("xb")


async def _receive(
    session: aiohttp.ClientSession,
    url: URL,
    largest_bytes: int,
    on_chunk: Callable[[bytes, int | None], None],
) -> None:
    """Hand on a body in pieces, each with the size that the server announced for the whole."""
    shown = url.with_user(None)
    done, total = 0, None
    try:
        async with session.get(url) as response:
            if response.status != HTTPStatus.OK:
                raise ToolReleaseError(f"{shown} answered {response.status} {response.reason}.")
            total = response.content_length
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                done += len(chunk)
                if done > largest_bytes:
                    raise ToolReleaseError(f"{shown} is over {largest_bytes} bytes, which cannot be right.")
                on_chunk(chunk, total)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as err:
        raise ToolReleaseError(f"{shown} cannot be reached: {describe_failure(err)}.") from err
    except ValueError as err:
        # Not quoted: it may hold a password.
        raise ToolReleaseError(
            f"{shown} cannot be asked for: a proxy in the environment, or a redirect, names no address."
        ) from err
    except TimeoutError as err:
        raise ToolReleaseError(f"{shown} sent nothing for too long, after {_amount(done, total)}.") from err
    except (aiohttp.ClientError, ConnectionError) as err:
        raise ToolReleaseError(
            f"{shown} was cut off after {_amount(done, total)}: {describe_failure(err)}."
        ) from err


def _amount(done: int, total: int | None) -> str:
    return f"{done} bytes" if total is None else f"{done} of {total} bytes"


async def _unpack(archive: Path, program: Path, step: Step) -> None:
    for done, total in extract_program(archive, program.name, program):
        step.progressed(done, total, "bytes unpacked")
        # Hand the loop to others between the pieces: events must be shown and an interrupt must be heard.
        await asyncio.sleep(0)
