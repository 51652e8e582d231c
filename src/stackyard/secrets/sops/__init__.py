"""SOPS files, read and written natively: one data key a file, wrapped for each age recipient.

`cipher` is one value, `rules` says which values are encrypted, `metadata` is the part that SOPS adds to a
file, `text` puts all of it into YAML, JSON and dotenv, `tree` walks over the values and makes the MAC,
`config` reads `.sops.yaml`, and `file` joins these. Keys of other services (PGP, KMS, ...) are kept and
named, never used.
"""

from __future__ import annotations
