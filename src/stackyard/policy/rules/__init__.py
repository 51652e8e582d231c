"""The rules for modules and stacks, one file for each: what it demands, why, and the check."""

from __future__ import annotations

from stackyard.policy.rules import (
    major_versions,
    module_files,
    module_sources,
    module_versions,
    outputs,
    provider_versions,
    readable_code,
    readme_tables,
    stack_files,
    stack_isolation,
    state_keys,
    tracked_files,
    variables,
)

__all__ = ["RULES"]

RULES = tuple(
    one.RULE
    for one in (
        readable_code,
        module_sources,
        module_versions,
        provider_versions,
        module_files,
        variables,
        outputs,
        readme_tables,
        stack_files,
        state_keys,
        tracked_files,
        stack_isolation,
        major_versions,
    )
)
