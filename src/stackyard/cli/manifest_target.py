"""Commands on a target that may be a manifest: which is meant, and which options are for manifests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.operator_options import says_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_manifest_name", "list_permits", "refuse_manifest_options", "refuse_plan_options"]

_KIND = "manifest"
# What a run of a manifest has, and one of another target has not.
_ONLY_MANIFESTS = {
    "depth": "--depth",
    "targets": "--target",
    "vm_ids": "--vm-id",
    "timeouts": "--timeout",
    "skip_preflight": "--skip-preflight",
    "report_dir": "--report-dir",
}
# What changes a plan, besides the options that permit something.
_ONLY_PLANS = ("recreate", "adopt", "accept_renames")
_PERMIT = "allow_"


def find_manifest_name(verb: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options with the manifest that a command line means; None where it means something else.

    Raises:
        UsageError: Nothing is named, or two things are.
    """
    target = values["target"]
    if says_manifest(values):
        if target is not None:
            raise UsageError(f"`{target}` and a manifest are named: say one of them.")
        return dict(values)
    if target is None:
        raise UsageError(f"Say what to {verb}: a TARGET such as `env:dev` or `manifest:n2-quick`.")
    kind, colon, name = target.partition(":")
    if colon:
        return {**values, "manifest": name} if kind == _KIND else None
    return {**values, "manifest": target} if _is_manifest(target, values["site"]) else None


def _is_manifest(name: str, site: str | None) -> bool:
    """Return whether a bare name is a manifest and nothing else; the names of files say so."""
    from stackyard.sources.site.discovery import SiteNotFoundError, find_site  # lazy: only for a bare name

    try:
        root = find_site(site)
    except SiteNotFoundError:
        return False
    return (root / "manifests" / f"{name}.yaml").is_file() and not (root / "envs" / f"{name}.yaml").is_file()


def list_permits(values: Mapping[str, Any]) -> list[str]:
    """Return the options of a command line that permit what the guard refuses."""
    return [name for name in values if name.startswith(_PERMIT) and values[name]]


def refuse_plan_options(values: Mapping[str, Any]) -> None:
    """Refuse options that change a plan where no plan is made, as in the dry run of a manifest.

    Raises:
        UsageError: With each of them.
    """
    named = [name for name in _ONLY_PLANS if values.get(name)] + list_permits(values)
    if given := [f"--{name.replace('_', '-')}" for name in named]:
        target = f"manifest:{values['manifest']}" if values["manifest"] else "TARGET"
        raise UsageError(
            f"--dry-run of a manifest lists its nodes, and makes no plan for {', '.join(given)}.",
            remedy=f"Use: stackyard plan {target} {' '.join(given)} ...",
        )


def refuse_manifest_options(values: Mapping[str, Any], *, is_manifest: bool) -> None:
    """Refuse options that mean nothing where a manifest is not run as a whole.

    Args:
        values: The options.
        is_manifest: Whether the target is a manifest after all.

    Raises:
        UsageError: With each of them.
    """
    given = [option for name, option in _ONLY_MANIFESTS.items() if values[name]]
    if given:
        verb = "is" if len(given) == 1 else "are"
        what = values["target"]
        why = f"run {what} as a whole with --yes" if is_manifest else f"{what} is none"
        raise UsageError(f"{', '.join(given)} {verb} for manifests that are run as a whole: {why}.")
