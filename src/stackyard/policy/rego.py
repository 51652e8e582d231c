"""The user's own rules for modules and stacks, in Rego: packages below `stackyard.repository`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Severity
from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Level
from stackyard.policy.providers import needed_providers
from stackyard.sources.stacks.repository import REPOSITORY_FILE

if TYPE_CHECKING:
    from stackyard.guard.findings import Finding as GuardFinding
    from stackyard.policy.context import CodeFolder, PolicyContext

__all__ = ["describe_repository", "judge_with_rego"]

# What is wrong with the rules themselves: no exception can name it.
_BROKEN = "rego"


async def judge_with_rego(context: PolicyContext) -> list[Finding]:
    """Return what the rules in the folders that `policy` of stackyard.yaml names find."""
    if not context.repository.policy:
        return []
    from stackyard.guard.policy import evaluate_repository  # lazy: few repositories have rules of their own

    found = await evaluate_repository(describe_repository(context), context.repository.policy)
    return [_convert(context, one) for one in found]


def _convert(context: PolicyContext, found: GuardFinding) -> Finding:
    # What is wrong with the rules themselves has its place in their files, which are absolute.
    where = found.where or Location(f"{context.repository.prefix}{REPOSITORY_FILE}")
    if os.path.isabs(where.path):
        where = Location(os.path.relpath(where.path, context.repository.tree.top), where.line)
    is_error = found.kind.severity is Severity.ERROR
    return Finding(
        rule=found.label.rpartition(".")[0] or _BROKEN,
        detail=found.detail if found.label else f"{found.kind.summary} ({found.kind.code}): {found.detail}",
        where=where,
        remedy=found.kind.remedy,
        level=Level.ERROR if is_error else Level.WARNING,
    )


def describe_repository(context: PolicyContext) -> dict[str, Any]:
    """Return what rules see as `input`; every file is from the top of the git repository."""
    return {
        "modules": [
            {"name": path.rpartition("/")[2], **_describe_folder(folder)}
            for path, folder in context.modules.items()
        ],
        "stacks": [
            {
                "name": name,
                "layer": one.stack.layer,
                "tags": list(one.stack.settings.tags),
                "critical": one.stack.settings.critical,
                "after": [dependency.stack for dependency in one.stack.settings.after],
                "uses_modules": [path for path in context.called_folders(one.folder.path)[1:]],
                "uses_providers": sorted(needed_providers(context, one.folder.path)),
                **_describe_folder(one.folder),
            }
            for name, one in context.stacks.items()
        ],
    }


def _describe_folder(folder: CodeFolder) -> dict[str, Any]:
    """Return what the code of a folder says, each with its file and line."""
    rows: dict[str, list[dict[str, Any]]] = {
        key: [] for key in ("variables", "outputs", "module_calls", "providers", "resources")
    }
    for file, said in folder.code.items():
        for name, one in said.variables.items():
            default = {"has_default": one.default is not None, "sensitive": one.is_sensitive}
            row = {"name": name, "type": one.type, "description": one.description, **default}
            rows["variables"].append({**row, "file": file, "line": one.line})
        for name, out in said.outputs.items():
            row = {"name": name, "description": out.description, "sensitive": out.is_sensitive}
            rows["outputs"].append({**row, "file": file, "line": out.line})
        for call in said.modules:
            row = {"name": call.name, "source": call.source, "version": call.version}
            rows["module_calls"].append({**row, "file": file, "line": call.line})
        for name, provider in said.required.items():
            row = {"name": name, "source": provider.source, "version": provider.version}
            rows["providers"].append({**row, "file": file, "line": provider.line})
        for resource in said.resources:
            row = {"type": resource.type, "name": resource.name}
            rows["resources"].append({**row, "file": file, "line": resource.line})
    return {"path": folder.path, "files": sorted(folder.names), **rows}
