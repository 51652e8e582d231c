"""stackyard manages Proxmox VE as code, through OpenTofu.

It resolves desired state from any source, renders it, plans, checks the plan with a guard, applies it,
verifies the guests and publishes an inventory. docs/architecture.md lists the packages. A test enforces the
direction of their imports.
"""

__version__ = "0.1.0"
