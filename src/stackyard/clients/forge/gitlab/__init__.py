"""GitLab, which calls a pull request a merge request: its REST API of version 4."""

from __future__ import annotations
