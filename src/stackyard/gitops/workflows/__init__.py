"""The files by which the CI of a forge runs `stackyard gitops`."""

from __future__ import annotations

from stackyard.gitops.workflows.files import Runner, WorkflowFile, make_workflows
from stackyard.gitops.workflows.oidc import AwsRoles, read_roles

__all__ = ["AwsRoles", "Runner", "WorkflowFile", "make_workflows", "read_roles"]
