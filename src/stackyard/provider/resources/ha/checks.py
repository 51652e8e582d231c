"""Checks that the kinds of high availability share."""

from __future__ import annotations

from stackyard.provider.checks import matches

__all__ = ["COMMENT", "HA_ID"]

HA_ID = matches(
    "[a-zA-Z][a-zA-Z0-9_.-]*[a-zA-Z0-9]",
    "begin with a letter, end with a letter or digit, and be of letters, digits and ._- in between",
)
COMMENT = matches(r"\S(.*\S)?", "be one line that neither begins nor ends with a space")
