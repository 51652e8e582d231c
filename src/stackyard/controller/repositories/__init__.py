"""Repositories as the controller serves them: committed work, and uncommitted work as the branch `_working`.

`library` finds repositories and keeps their copies. `served` is one copy; each request checks the
repository again, so that no client gets an old state. `smart` and `plain` are the two protocols of git, and
single files. `spool` stores an answer of git once for all clients with the same request.
"""

from __future__ import annotations
