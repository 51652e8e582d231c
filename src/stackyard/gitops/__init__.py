"""Pull requests show the plan; a merge applies exactly that plan."""

from __future__ import annotations
