"""`stackyard stack show`: everything that is known of one stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.completions import complete_stacks
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.stacks.facts import StackFacts
    from stackyard.sources.stacks.model import Stack, StackSettings
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["show"]


@click.command("show", cls=Command)
@click.argument("name", shell_complete=complete_stacks)
def show(name: str) -> Result:
    """Show a stack: backend, providers, modules, variables, and every file that it reads.

    NAME is the name that `stackyard stack list` shows, or the path of the folder. "Not known" lists the
    expressions that choose a file and that only OpenTofu can compute: with one of them, a stack counts as
    changed whenever changes are asked for. A constant path, a local value or a default takes it off the list.

    \b
    stackyard stack show onprem/server_a
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.stacks.facts import read_facts  # lazy: only when this verb runs
    from stackyard.sources.stacks.repository import find_stacks  # lazy: as above

    repository = find_stacks()
    stack = repository.find(name)
    facts = read_facts(repository, stack)
    repository.cache.save()
    document = _document(repository, stack, facts)
    return Result(document=document, show=lambda writer: _show(writer, document))


def _document(repository: StackRepository, stack: Stack, facts: StackFacts) -> dict[str, Any]:
    return {
        "name": stack.name,
        "path": stack.path,
        "layer": stack.layer,
        **_settings(stack.settings),
        "before": _later(repository, stack),
        **_code(facts),
        "var_files": [_relative(repository, path) for path in facts.var_files],
        "reads": sorted(facts.reads),
        "outside": list(facts.outside),
        "unresolved": [{"where": str(one.where), "text": one.text} for one in facts.unresolved],
        "problems": [{"where": str(one.where), "text": one.text} for one in facts.problems],
    }


def _later(repository: StackRepository, stack: Stack) -> list[str]:
    """Return the stacks that come after this one, whichever of the two says so."""
    others = repository.stacks.values()
    said = {other.name for other in others for one in other.settings.after if one.stack == stack.name}
    return sorted({*stack.settings.before, *said})


def _code(facts: StackFacts) -> dict[str, Any]:
    from stackyard.sources.stacks.backend_secrets import show_settings  # lazy: only when this verb runs

    backend = facts.backend
    return {
        "backend": None
        if backend is None
        else {
            "type": backend.type,
            "settings": show_settings(backend.settings),
            "where": str(backend.where),
        },
        "providers": dict(facts.providers),
        "modules": list(facts.modules),
        "variables": {
            name: {
                "type": one.type,
                "has_default": one.has_default,
                "sensitive": one.sensitive,
                "where": str(one.where),
            }
            for name, one in facts.variables.items()
        },
        "outputs": list(facts.outputs),
        "remote_states": [
            {
                "name": one.name,
                "type": one.type,
                "settings": show_settings(one.settings),
                "where": str(one.where),
            }
            for one in facts.remote_states
        ],
    }


def _settings(settings: StackSettings) -> dict[str, Any]:
    return {
        "tags": list(settings.tags),
        "protected": settings.protected,
        "critical": settings.critical,
        "engine": settings.engine,
        "provider": settings.provider,
        "after": [{"stack": one.stack, "outputs": dict(one.outputs)} for one in settings.after],
        "watch": list(settings.watch),
    }


def _relative(repository: StackRepository, path: Any) -> str:
    import os  # lazy: only when this verb runs

    return os.path.relpath(path, repository.root)


def _show(writer: TextWriter, said: dict[str, Any]) -> None:
    writer.line(said["name"])
    writer.line(f"  folder     {said['path']}")
    for key in ("layer", "engine", "provider"):
        if said[key]:
            writer.line(f"  {key:<10} {said[key]}")
    if said["tags"]:
        writer.line(f"  tags       {' '.join(said['tags'])}")
    if said["protected"]:
        writer.line("  protected  nothing of it may be destroyed")
    if not said["critical"]:
        writer.line("  critical   no: new major versions are tried here first")
    _show_backend(writer, said["backend"])
    after = [one["stack"] + _outputs(one["outputs"]) for one in said["after"]]
    for title, rows in (
        ("after", after),
        ("before", said["before"]),
        ("providers", [f"{name} = {source}" for name, source in said["providers"].items()]),
        ("modules", said["modules"]),
        ("var files", said["var_files"]),
        ("variables", [_variable(name, one) for name, one in said["variables"].items()]),
        ("outputs", said["outputs"]),
        ("reads", said["reads"]),
        ("reads outside of the repository", said["outside"]),
        ("not known", [f"{one['where']}: {one['text']}" for one in said["unresolved"]]),
        ("states of others", [f"{one['where']}: {one['name']}" for one in said["remote_states"]]),
        ("problems", [f"{one['where']}: {one['text']}" for one in said["problems"]]),
    ):
        if rows:
            writer.line(f"  {title}")
            for row in rows:
                writer.line(f"    {row}")


def _show_backend(writer: TextWriter, backend: dict[str, Any] | None) -> None:
    if backend is None:
        writer.line("  backend    none in the code")
        return
    settings = ", ".join(f"{name}={value}" for name, value in backend["settings"].items())
    writer.line(f"  backend    {backend['type']}{f': {settings}' if settings else ''} ({backend['where']})")


def _outputs(outputs: dict[str, str]) -> str:
    if not outputs:
        return ""
    return f" ({', '.join(v if v == o else f'{v} = {o}' for v, o in outputs.items())})"


def _variable(name: str, one: dict[str, Any]) -> str:
    words = [one["type"] or "any", *([] if one["has_default"] else ["required"])]
    words += ["sensitive"] if one["sensitive"] else []
    return f"{name}: {', '.join(words)}"
