"""Desired state as OpenTofu JSON: the same bytes for the same model, and no secret in any of them."""

from __future__ import annotations

from stackyard.render.configuration import Provider, Rendered, Variable, render, render_guests

__all__ = ["Provider", "Rendered", "Variable", "render", "render_guests"]
