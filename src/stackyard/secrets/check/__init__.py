"""Finds secrets in clear among the files that git would commit.

`patterns` knows what secrets look like, `promises` knows which files must be encrypted, and `scan` reads
the index and uses both. A finding names the place, never the secret.
"""

from __future__ import annotations
