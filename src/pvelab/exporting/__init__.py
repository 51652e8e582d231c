"""Writes a seed from a running cluster, a lab or a real one, by reading its API only.

`export_seed` uses a `Getter` (anything that can send a GET call) and returns the seed as a document, with a
list of what could not be read. Guests are written with their configuration; users, pools, rules and jobs
are written as the calls that create them. The seed holds no secret: the API returns few, and those are left
out here. `rehearse` fills a lab with the document and removes what it refuses, and `written` prints it.
"""

from __future__ import annotations

from pvelab.exporting.cluster import export_seed
from pvelab.exporting.read import Getter, Source
from pvelab.exporting.rehearsal import rehearse
from pvelab.exporting.write import format_seed

__all__ = ["Getter", "Source", "export_seed", "format_seed", "rehearse"]
