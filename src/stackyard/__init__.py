"""stackyard runs Proxmox VE infrastructure as code through OpenTofu.

Desired state from any source is resolved, rendered, planned, guarded, applied, verified and published.
The packages and the direction of their imports are drawn in docs/architecture.md and kept by a test.
"""

__version__ = "0.1.0"
