"""The data sources, each in the file of what it reads: `ALL` lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.data_sources import cluster, guests

if TYPE_CHECKING:
    from stackyard.provider.kinds import DataSource

__all__ = ["ALL"]

ALL: tuple[DataSource, ...] = (*cluster.ALL, *guests.ALL)
