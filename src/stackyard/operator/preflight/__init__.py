"""Looking at a host before anything is asked of it: everything that would stop a run, found at once.

`inspect` looks and says what it saw; `preflight` does the same and raises when something stands in the way,
with every finding and not only the first. Checks run side by side: those of this machine (programs, secrets)
whatever the host does, those of the host as soon as its API has answered. None of them changes anything. What
a check cannot find out it says as a warning, never as a fault.
"""

from __future__ import annotations

from stackyard.operator.preflight.model import (
    CheckResult,
    PreflightError,
    PreflightUnreachableError,
    Report,
    Status,
)
from stackyard.operator.preflight.running import inspect, preflight
from stackyard.operator.preflight.subject import (
    Purpose,
    Subject,
    subject_of,
    subject_of_env,
    subject_of_here,
)

__all__ = [
    "CheckResult",
    "PreflightError",
    "PreflightUnreachableError",
    "Purpose",
    "Report",
    "Status",
    "Subject",
    "inspect",
    "preflight",
    "subject_of",
    "subject_of_env",
    "subject_of_here",
]
