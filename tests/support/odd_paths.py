"""Paths that no honest client sends, as the bytes of a request line."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["odd_paths"]

_PIECES = (
    *(b"/", b"//", b"///", b"[", b"]", b"//[", b"//[::1", b"@", b":", b"://", b"%", b"%%", b"%0", b"%00"),
    *(b"%2f", b"%2e%2e", b"..", b".", b"\\", b"%5c", b";", b"?", b"#", b"&", b"=", b"%ff", b"%c0%af"),
    *(b"\xff\xfe", "ü".encode(), b"\x7f", b"%0d%0a", b"%ed%a0%80", b"http:", b"*", b"a" * 300, b"\x01"),
)
_FIXED = (
    *(b"/", b"//", b"//[", b"/[", b"/]", b"//[/]", b"//[::1]", b"//[::1]:x/", b"//@", b"//a:b@c:99999/"),
    *(b"http://[", b"http://[/", b"http://x:y/", b"https://[::1]:99999/a", b"*", b"a", b"?", b"/?[", b"/#["),
    *(
        b"/%00",
        b"/%",
        b"/%zz",
        b"/\xff",
        b"/%ff",
        b"/" + b"a" * 60_000,
        b"/" + b"/" * 5000,
        b"/" + b"%2f" * 5000,
    ),
    *(
        b"/?ID=[",
        b"/?ID=%ff",
        b"/?ID=" + b"a" * 5000,
        b"/?" + b"&" * 5000,
        b"/?" + b"a=b&" * 2000,
        b"/x?ID=\xff",
    ),
)


def odd_paths(*prefixes: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Yield every fixed path and `count` random ones below each prefix."""
    chance = random.Random(seed)
    for prefix in prefixes:
        yield from (prefix + path for path in _FIXED)
        for _ in range(count):
            yield prefix + b"".join(chance.choice(_PIECES) for _ in range(chance.randint(1, 6)))
