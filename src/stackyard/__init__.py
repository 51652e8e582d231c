"""stackyard manages Proxmox VE as code, through OpenTofu.

It resolves desired state from any source, renders it, plans, checks the plan with a guard, applies it,
verifies the guests and publishes an inventory. docs/architecture.md lists the packages. A test enforces the
direction of their imports.
"""

try:
    from stackyard._version import __version__
except ImportError:
    # Sources that were neither built nor installed.
    __version__ = "0.1.0.dev0"

__all__ = ["__version__"]
