"""The pytest plugin under the name that projects know: `-p stackyard.testing`. It is `pvelab.testing`."""

from __future__ import annotations

pytest_plugins = ("pvelab.testing",)
