"""Ansible Vault 1.1 and 1.2, read and written natively: whole files, and `!vault` values inside YAML.

`envelope` is one encrypted text, `passwords` finds the passwords, `file` joins these. A vault holds text or
bytes; it has no keys, so that whoever knows the password can read it.
"""

from __future__ import annotations
