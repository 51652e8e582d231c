"""A seed written from a cluster that runs, a lab or a real one, by reading its API and nothing else.

`export_seed` asks a `Getter` (whatever can make a GET call) and returns the seed as a document, with a
list of what could not be read. Guests come as they stand; users, pools, rules and jobs come as the calls that
make them again. No secret is in it: the API tells none of most kinds, and what it tells is left out here.
`rehearse` fills a lab with the document and takes out what it refuses, and `written` prints it.
"""

from __future__ import annotations

from stackyard.lab.exporting.cluster import export_seed
from stackyard.lab.exporting.reading import Getter, Source
from stackyard.lab.exporting.rehearsal import rehearse
from stackyard.lab.exporting.writing import written

__all__ = ["Getter", "Source", "export_seed", "rehearse", "written"]
