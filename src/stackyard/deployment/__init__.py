"""The deployment object: one versioned desired state for all guests, written by one session at a time.

`settings.find_place` says where it is; `fetch.fetch` reads it, whole or not at all; `validate.check` holds it
against the contract and turns it into the `Desired` model; `writing.write` is the only way to change it:
lease, fetch, change, validate, difference, acknowledgement, conditional upload. The stores behind it are in
`embedded` (SQLite, memory) and `bucket` (plain JSON in S3). This package knows nothing of plans and states.
"""

from __future__ import annotations

from stackyard.deployment.fetch import Object, fetch, rules_of
from stackyard.deployment.settings import Place, find_place
from stackyard.deployment.validate import Checked, check

__all__ = ["Checked", "Object", "Place", "check", "fetch", "find_place", "rules_of"]
