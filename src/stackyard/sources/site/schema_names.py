"""The kinds of files that have a schema, known without loading any of them."""

from __future__ import annotations

__all__ = ["ENTITIES"]

# Where each kind of file is.
ENTITIES = {
    "site": "site.yaml",
    "secrets": "secrets.yaml",
    "host": "hosts/NAME.yaml",
    "node": "nodes/NAME.yaml",
    "template": "vms/NAME.yaml",
    "preset": "vms/presets/NAME.yaml, presets/NAME.yaml",
    "posture": "postures/NAME.yaml",
    "env": "envs/NAME.yaml",
    "spec": "specs/NAME.yaml",
    "manifest": "manifests/NAME.yaml",
    "hypervisor": "hypervisors/NAME.yaml of a cluster",
    "hypervisor-node": "hypervisors/NAME.yaml of a node",
    "stack": "stack.yaml, beside the code of a stack",
    "repository": "stackyard.yaml, at the top of a repository",
}
