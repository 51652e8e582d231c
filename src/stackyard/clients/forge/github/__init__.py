"""GitHub and GitHub Enterprise Server: their REST API of 2022-11-28."""

from __future__ import annotations
