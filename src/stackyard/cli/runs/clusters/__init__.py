"""The runs of commands on the infrastructure of Talos clusters: from options to results."""

from __future__ import annotations
