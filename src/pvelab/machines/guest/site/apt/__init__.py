"""The upper half of python3-apt: the packages of the guest, and functions to change them."""

from __future__ import annotations

from . import cache, debfile, package
from .cache import Cache
from .package import Package, Version

__all__ = ["Cache", "Package", "Version", "cache", "debfile", "package"]
