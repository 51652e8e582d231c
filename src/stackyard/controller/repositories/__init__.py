"""Repositories as the controller serves them: committed work, and the uncommitted as the branch `_working`.

`library` finds them and keeps their copies, each as `served` says: looked at whenever somebody asks, so that
nobody gets an old state. `smart` and `plain` are the two protocols of git, and single files; `spool` holds
what git answers once for everybody who asks the same.
"""

from __future__ import annotations
