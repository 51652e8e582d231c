"""Reports of runs: what was done, how long it took, what failed and where more is written.

`write_reports` turns the outcome of a run into three files that say the same, one for people (Markdown), one
for programs (JSON) and one for build servers (JUnit XML); a scenario makes a `Report` itself and calls
`write_report`. Each file appears whole or not at all, none is ever written over, and no secret is in one.
This package knows outcomes alone: it runs nothing, and prints nothing.
"""

from __future__ import annotations

from stackyard.operator.reports.model import Report, report_of
from stackyard.operator.reports.writing import write_report, write_reports

__all__ = ["Report", "report_of", "write_report", "write_reports"]
