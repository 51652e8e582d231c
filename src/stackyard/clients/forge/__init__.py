"""Forges behind one protocol: Gitea and Forgejo, GitHub, GitLab."""

from __future__ import annotations
