"""Newer versions of the providers and modules of stacks: reported, and written into code and lock files.

What there is: `declarations` reads what a file requires, with the bytes where it says so, and `requirements`
what a stack requires. `versions` says which of many versions are newer.

What is newer: `cli_config` reads the settings of the engine. `sources` chooses who is asked: `registry`,
`mirrors` or `oci`, each through `fetch`. `report` compares.

What is written: `plan_writes` decides, `majors` says who may take a new major version, `locking` lets the
engine compute checksums, and `write` changes the files of stacks that belong together, all or none.
"""
