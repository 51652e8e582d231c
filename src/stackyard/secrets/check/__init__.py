"""Finding secrets in clear among the files that git would commit.

`patterns` knows what secrets look like, `promises` which files must be encrypted, `scan` reads the index and
asks both. A finding names the place, never the secret.
"""

from __future__ import annotations
