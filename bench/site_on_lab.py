"""A new site, and a lab in a process of its own that it is for."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.lab import started
from stackyard.sources.site.new_site import LabAccess, start_site

__all__ = ["site_on_lab"]

_NODE = "pve1"


@contextlib.contextmanager
def site_on_lab(name: str, *options: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Start a lab of one node and make a site for it; give the folder of the site and what the lab said."""
    command = [sys.executable, "-m", "stackyard", "lab", "up", "--foreground", "--json", "--port", "0"]
    with (
        tempfile.TemporaryDirectory(prefix="stackyard-bench-") as folder,
        started([*command, "--nodes", _NODE, "--name", name, *options]) as (_, line),
    ):
        ready = json.loads(line)
        access = LabAccess(
            url=ready["url"],
            fingerprint=ready["fingerprint"],
            api_token=ready["api_token"],
            password=ready["password"],
            nodes=(_NODE,),
            ssh_ports=(ready["ssh_ports"][_NODE],),
        )
        start_site(Path(folder) / "site", access)
        yield Path(folder) / "site", {**ready, "name": name}
