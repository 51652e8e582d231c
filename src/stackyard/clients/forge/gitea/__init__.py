"""Gitea and Forgejo: their API of version 1."""

from __future__ import annotations
