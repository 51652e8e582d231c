"""SOPS files, read and written natively: one data key for each file, wrapped for each age recipient.

`cipher` encrypts one value, `rules` selects the values to encrypt, `metadata` is the part that SOPS adds to
a file, `text` writes all of it as YAML, JSON and dotenv, `tree` walks over the values and computes the MAC,
`config` reads `.sops.yaml`, and `file` joins these. Keys of other services (PGP, KMS, ...) are kept and
named, never used.
"""

from __future__ import annotations
