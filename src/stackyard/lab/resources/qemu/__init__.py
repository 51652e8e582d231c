"""QEMU guests: `/nodes/{node}/qemu`.

`drives` and `networks` read and print devices, `disks` allocates volumes for them, `options` says which
privilege each option needs, `pending` stages changes and applies them; the other modules are routes.
"""
