"""The files by which the CI of a forge runs `stackyard gitops`."""

from __future__ import annotations

from stackyard.gitops.workflows.files import Runner, WorkflowFile, make_workflows

__all__ = ["Runner", "WorkflowFile", "make_workflows"]
