"""What is installed, what can be reached, and what is outdated, with what to do about each.

`examine` runs every check at once, each with a limit of time. None of them changes anything, and none asks
anyone but the store and the hosts of the site: whether there is a newer release is not looked up.
"""

from __future__ import annotations

from stackyard.operator.doctor.model import DoctorReport, DoctorRow, RowStatus
from stackyard.operator.doctor.run import examine

__all__ = ["DoctorReport", "DoctorRow", "RowStatus", "examine"]
