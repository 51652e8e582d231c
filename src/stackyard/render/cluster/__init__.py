"""A Talos cluster as the files of its folder `infrastructure`: pure, from a resolved cluster to texts.

`render_infrastructure` returns the files that git may show, `render_secrets` the plain text of those that are
encrypted before they are written. Both take the user's own templates, which replace ours file by file.
"""

from __future__ import annotations

from stackyard.render.cluster.files import (
    RenderTemplate,
    TemplateFile,
    render_infrastructure,
    render_secrets,
    render_template,
)
from stackyard.render.cluster.kubernetes import render_kubernetes_secrets

__all__ = [
    "RenderTemplate",
    "TemplateFile",
    "render_infrastructure",
    "render_kubernetes_secrets",
    "render_secrets",
    "render_template",
]
