"""Reads YAML, JSON and dotenv into layouts, and writes single values back in the syntax of each format.

`yaml_layout`, `json_layout` and `dotenv_layout` read; `yaml_scalar` writes values of YAML. They do not know
encryption: other modules decide what is a secret.
"""

from __future__ import annotations
