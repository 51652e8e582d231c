"""What the verbs that change the pre-commit hook answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.git.hook import InstalledHook

__all__ = ["hook_result"]


def hook_result(hook: InstalledHook) -> Result:
    """Return where the hook is, what it runs, and which hook runs before it."""
    return Result(
        document={
            "hook": str(hook.path),
            "kept": None if hook.kept is None else str(hook.kept),
            "checks": list(hook.checks),
        },
        show=lambda writer: writer.line(" ".join(_sentences(hook))),
    )


def _sentences(hook: InstalledHook) -> Iterator[str]:
    if hook.checks:
        checks = ", ".join(f"`stackyard {check}`" for check in hook.checks)
        yield f"The hook {hook.path} runs {checks}."
    else:
        yield f"No hook of stackyard is installed in {hook.path.parent}."
    if hook.kept is not None:
        yield f"The hook that was there runs first: {hook.kept}."
