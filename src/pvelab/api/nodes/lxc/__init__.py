"""Containers: `/nodes/{node}/lxc`.

`mountpoints` and `networks` parse and print devices, and `disks` allocates volumes for them. `settings`
converts options to the form of the configuration, and `options` lists the privilege that each needs.
`pending` stages changes and applies them. The other modules are routes.
"""
