"""GitLab: its REST API of version 4."""

from __future__ import annotations
