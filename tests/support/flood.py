"""A flood of wrong logins: every way to show wrong credentials, on many connections at once."""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

__all__ = ["SHOWN", "Flood", "flooding", "unchecked"]


def _basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


# What is shown, by its name; those of `SHOWN` are attempts to log in that reach the handler.
SHOWN: Mapping[str, str] = {
    "basic": _basic("admin", "guess"),
    "basic of many names": _basic("name-{}", "guess"),
    "basic without a password": _basic("admin", ""),
    "long name": _basic("n" * 20_000, "guess"),
    "bearer": "Bearer guess",
    "bearer without a value": "Bearer",
    "unknown scheme": "Negotiate abcdef",
    "Proxmox token": "PVEAPIToken=root@pam!lab=00000000-0000-0000-0000-000000000000",
    "not base64": "Basic %%%%",
    "one word": "garbage",
}
_OTHERS = {"none": "", "oversized": "Bearer " + "x" * 100_000}


@dataclass
class Flood:
    """What has been tried, and what was answered.

    Attributes:
        answered: Statuses by what was shown; 0 is a closed connection.
        honest_rounds: How often an honest client did its work meanwhile.
    """

    answered: collections.Counter[tuple[str, int]] = field(default_factory=collections.Counter)

    honest_rounds: int = 0

    @property
    def total(self) -> int:
        return self.answered.total()

    @property
    def attempts(self) -> int:
        """How many attempts to log in were answered by the handler."""
        return sum(
            count
            for (name, status), count in self.answered.items()
            if name in SHOWN and status in (401, 403, 429)
        )

    def statuses(self) -> dict[int, int]:
        counts: collections.Counter[int] = collections.Counter()
        for (_, status), count in self.answered.items():
            counts[status] += count
        return dict(sorted(counts.items()))


def unchecked() -> ssl.SSLContext:
    """Return a context that takes any certificate: this is an attacker."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.asynccontextmanager
async def flooding(
    url: str, path: str, *, width: int, method: str = "GET", headers: str = ""
) -> AsyncIterator[Flood]:
    """Send wrong logins on `width` connections at once for the length of the block."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rpartition(":")
    context = unchecked() if scheme == "https" else None
    flood, is_over = Flood(), asyncio.Event()

    async def attacker(number: int) -> None:
        kinds = list({**SHOWN, **_OTHERS, "not HTTP": ""})
        while not is_over.is_set():
            reader, writer = None, None
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            if reader is None or writer is None:
                flood.answered["connect", 0] += 1
                await asyncio.sleep(0)
                continue
            status = 1
            while status and not writer.is_closing() and not is_over.is_set():
                number += 1
                name = kinds[number % len(kinds)]
                shown = {**SHOWN, **_OTHERS}.get(name, "").replace("{}", str(number))
                text = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}"
                text += f"Authorization: {shown}\r\n" if shown else ""
                status = await _ask(
                    reader, writer, b"\x00\xff\r\n\r\n" if name == "not HTTP" else f"{text}\r\n".encode()
                )
                flood.answered[name, status] += 1
            writer.close()

    tasks = [asyncio.create_task(attacker(number * 7)) for number in range(width)]
    try:
        yield flood
    finally:
        is_over.set()
        await asyncio.gather(*tasks)


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """Send a request and return the status of the answer, 0 where the connection ends."""
    try:
        writer.write(request)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(head.split(" ", 2)[1])
        length = next(
            (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
        )
        await reader.readexactly(length)
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        return 0
    if "connection: close" in head.lower():
        writer.close()
    return status
