"""Manifests: v1 levels and v2 graphs of nodes, read, checked, converted and drawn."""

from __future__ import annotations

from stackyard.sources.manifest.model import Manifest, Node, NodeType, Scope
from stackyard.sources.manifest.read import find_manifest, read_manifest

__all__ = ["Manifest", "Node", "NodeType", "Scope", "find_manifest", "read_manifest"]
