"""What Gitea and GitHub answer alike, in the words of every forge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_flag, read_number, read_text
from stackyard.clients.forge.model import Comment, ForgeRepository, Issue

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_comment", "read_issue", "read_repository"]


def read_repository(document: Mapping[str, Any]) -> ForgeRepository:
    """Return a repository."""
    return ForgeRepository(
        name=read_text(document, "full_name"),
        default_branch=read_text(document, "default_branch"),
        clone_url=read_text(document, "clone_url"),
        url=read_text(document, "html_url"),
        is_private=read_flag(document, "private"),
    )


def read_comment(document: Mapping[str, Any]) -> Comment:
    """Return a comment."""
    return Comment(
        id=read_number(document, "id"),
        author=read_text(document, "user", "login"),
        body=read_text(document, "body"),
        url=read_text(document, "html_url"),
        created_at=read_text(document, "created_at"),
        updated_at=read_text(document, "updated_at"),
    )


def read_issue(document: Mapping[str, Any]) -> Issue:
    """Return an issue."""
    return Issue(
        number=read_number(document, "number"),
        title=read_text(document, "title"),
        body=read_text(document, "body"),
        is_open=read_text(document, "state") == "open",
        author=read_text(document, "user", "login"),
        url=read_text(document, "html_url"),
    )
