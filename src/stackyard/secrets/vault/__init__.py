"""Ansible Vault 1.1 and 1.2, read and written natively: whole files, and `!vault` values inside YAML.

`envelope` is one encrypted text, `passwords` finds the passwords, `file` joins these. A vault holds text or
bytes. It has no keys: the password alone decrypts it.
"""

from __future__ import annotations
