"""Sharing a data key between key groups: any so many of the parts give it back (Shamir, over GF(2^8))."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["combine", "split"]

# The field of AES: what is shifted out of eight bits comes back as this.
_REDUCTION = 0x1B


def split(secret: bytes, *, parts: int, threshold: int) -> list[bytes]:
    """Return parts of a secret, as many of which as the threshold says are needed to combine it again.

    Args:
        secret: What to share.
        parts: How many parts to make, at most 255.
        threshold: How many of them are needed, at least two.
    """
    if not 2 <= threshold <= parts <= 255:
        raise ValueError("a threshold is at least two, and at most the number of parts")
    polynomials = [bytes([byte]) + os.urandom(threshold - 1) for byte in secret]
    return [
        bytes(_evaluate(polynomial, x) for polynomial in polynomials) + bytes([x])
        for x in range(1, parts + 1)
    ]


def combine(parts: Sequence[bytes]) -> bytes:
    """Return the secret of enough parts; of too few, something else of the same length.

    Raises:
        ValueError: The parts do not belong together.
    """
    points = [part[-1] for part in parts if part]
    if len(parts) < 2 or len(set(points)) != len(parts) or len({len(part) for part in parts}) != 1:
        raise ValueError("the parts of the data key do not belong together")
    return bytes(_at_zero(points, [part[index] for part in parts]) for index in range(len(parts[0]) - 1))


def _evaluate(polynomial: bytes, x: int) -> int:
    total = 0
    for coefficient in reversed(polynomial):
        total = _times(total, x) ^ coefficient
    return total


def _at_zero(xs: Sequence[int], ys: Sequence[int]) -> int:
    """Interpolate the polynomial through the points and return its value at zero."""
    total = 0
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        basis = y
        for j, other in enumerate(xs):
            if i != j:
                basis = _times(basis, _times(other, _inverse(x ^ other)))
        total ^= basis
    return total


def _times(a: int, b: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        if a & 0x100:
            a = (a & 0xFF) ^ _REDUCTION
        b >>= 1
    return product


def _inverse(a: int) -> int:
    """Return a to the 254th: in a group of 255 elements, that undoes a."""
    result = 1
    for _ in range(254):
        result = _times(result, a)
    return result
