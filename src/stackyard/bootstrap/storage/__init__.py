"""The storage that a cluster needs before it: datasets on a TrueNAS.

Nothing is ever deleted here. A property of a dataset that is there is changed only where its entry says so.
"""

from __future__ import annotations

from stackyard.bootstrap.storage.plan import plan_storage_steps

__all__ = ["plan_storage_steps"]
