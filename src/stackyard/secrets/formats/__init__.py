"""Reading YAML, JSON and dotenv into layouts, and writing single values back as each of them spells them.

`yaml_layout`, `json_layout` and `dotenv_layout` read; `yaml_scalar` writes values of YAML. They know nothing
of encryption: what is a secret is decided elsewhere.
"""

from __future__ import annotations
