"""Reports of runs: what was done, how long it took, what failed and where the details are.

`write_reports` writes the outcome of a run into three files with the same content, one for people
(Markdown), one for programs (JSON) and one for build servers (JUnit XML). A scenario builds a `Report`
itself and calls `write_report`. Each file is written atomically, none is ever overwritten, and none holds a
secret. This package knows only outcomes: it runs nothing, and prints nothing.
"""

from __future__ import annotations

from stackyard.operator.reports.files import write_report, write_reports
from stackyard.operator.reports.model import Report, report_of

__all__ = ["Report", "report_of", "write_report", "write_reports"]
