"""Checks of a host before a run: everything that would stop the run, found at once.

`inspect` checks and returns the results. `preflight` does the same and raises an error with every finding
if something would stop the run. Checks run in parallel: those of this machine (programs, secrets) always,
those of the host as soon as its API has answered. None of them changes anything. If a check cannot get a
result, it reports a warning, never an error.
"""

from __future__ import annotations

from stackyard.operator.preflight.model import (
    CheckResult,
    PreflightError,
    PreflightReport,
    PreflightUnreachableError,
    Status,
)
from stackyard.operator.preflight.run import inspect, preflight
from stackyard.operator.preflight.subject import (
    PreflightSubject,
    Purpose,
    subject_of,
    subject_of_env,
    subject_of_here,
)

__all__ = [
    "CheckResult",
    "PreflightError",
    "PreflightReport",
    "PreflightSubject",
    "PreflightUnreachableError",
    "Purpose",
    "Status",
    "inspect",
    "preflight",
    "subject_of",
    "subject_of_env",
    "subject_of_here",
]
