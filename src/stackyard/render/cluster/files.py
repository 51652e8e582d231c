"""The files of an infrastructure, from our templates and those of the user."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

from stackyard.render.cluster.sandbox import TemplateFile, TemplateSet
from stackyard.render.cluster.values import collect_secrets, collect_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from stackyard.sources.cluster.model import Cluster

__all__ = [
    "SECRETS_NAME",
    "TEMPLATE_SUFFIX",
    "RenderTemplate",
    "TemplateFile",
    "render_infrastructure",
    "render_secrets",
    "render_template",
]

SECRETS_NAME = "secrets.sops.yaml"
TEMPLATE_SUFFIX = ".j2"
_ENCRYPTED = ".sops."


class RenderTemplate(Protocol):
    """Renders one of the user's own templates, as `render_template` does."""

    def __call__(self, templates: Mapping[str, TemplateFile], name: str, values: Mapping[str, Any], /) -> str:
        """Return the text that the template gives."""


def render_template(templates: Mapping[str, TemplateFile], name: str, values: Mapping[str, Any], /) -> str:
    """Return the text that one of some templates gives.

    Raises:
        TemplateError: It cannot be rendered; the error says in which line.
    """
    return TemplateSet(templates).render(name, values)


def render_infrastructure(
    cluster: Cluster,
    *,
    overrides: Mapping[str, TemplateFile] | None = None,
    checksums: Mapping[str, str] | None = None,
    render_own: RenderTemplate = render_template,
) -> dict[str, bytes]:
    """Return the files of `infrastructure/` that are not encrypted, by their path in it.

    Args:
        cluster: The cluster.
        overrides: The user's own templates by their path in `templates/config/infrastructure`. Each replaces
            ours of the same path, with or without `.j2`; others are added.
        checksums: The SHA-256 of images that are pinned, by file name.
        render_own: Renders the user's own templates.

    Raises:
        TemplateError: A template cannot be rendered.
    """
    values = collect_values(cluster, checksums or {})
    return {
        name: text.encode()
        for name, text in _render_all(overrides or {}, values, render_own, is_encrypted=False)
        if text.strip()
    }


def render_secrets(
    cluster: Cluster,
    *,
    overrides: Mapping[str, TemplateFile] | None = None,
    checksums: Mapping[str, str] | None = None,
    render_own: RenderTemplate = render_template,
) -> dict[str, bytes]:
    """Return the plain text of the files of `infrastructure/` that must be encrypted, by their path in it.

    The texts must not reach a disk. A file without values is left out.

    Args:
        cluster: The cluster.
        overrides: As for `render_infrastructure`.
        checksums: As for `render_infrastructure`.
        render_own: As for `render_infrastructure`.

    Raises:
        TemplateError: A template cannot be rendered.
    """
    secrets = collect_secrets(cluster)
    values = {
        **collect_values(cluster, checksums or {}),
        **{name: value for name, value in cluster.secrets.items() if value},
        "infrastructure_secrets": secrets,
    }
    rendered = _render_all(overrides or {}, values, render_own, is_encrypted=True)
    return {name: text.encode() for name, text in rendered if text.strip()}


def _render_all(
    overrides: Mapping[str, TemplateFile],
    values: Mapping[str, Any],
    render_own: RenderTemplate,
    *,
    is_encrypted: bool,
) -> Iterator[tuple[str, str]]:
    templates = {**_list_own(overrides), **overrides}
    rendering = TemplateSet(templates)
    for name in sorted(templates):
        if (_ENCRYPTED in name) is not is_encrypted:
            continue
        if not name.endswith(TEMPLATE_SUFFIX):
            text = templates[name].text
        elif name in overrides:
            text = render_own(templates, name, values)
        else:
            text = rendering.render(name, values)
        yield name.removesuffix(TEMPLATE_SUFFIX), text


def _list_own(overrides: Mapping[str, TemplateFile]) -> dict[str, TemplateFile]:
    """Return our templates but those whose file the user renders."""
    replaced = {name.removesuffix(TEMPLATE_SUFFIX) for name in overrides}
    top = resources.files(__package__) / "templates" / "infrastructure"
    return {
        name: TemplateFile(path=f"(built-in template) {name}", text=file.read_text())
        for name, file in _walk(top, "")
        if name.removesuffix(TEMPLATE_SUFFIX) not in replaced
    }


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry
