"""The ports that matter in the networks of guests."""

from __future__ import annotations

__all__ = ["API_PORT", "OWN_PORTS", "PORTS", "SSH_PORT"]

SSH_PORT, API_PORT = 22, 8006
# What programs in guests can reach on others: SSH, web servers, the API, a controller.
PORTS = (SSH_PORT, 80, 443, API_PORT, 44443)
# What every guest itself listens on.
OWN_PORTS = (SSH_PORT,)
