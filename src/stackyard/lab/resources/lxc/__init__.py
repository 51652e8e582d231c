"""Containers: `/nodes/{node}/lxc`.

`mountpoints` and `networks` read and print devices, `disks` allocates volumes for them, `settings` brings
options into the form that the configuration keeps, `options` says which privilege each needs, `pending`
stages changes and applies them; the other modules are routes.
"""
