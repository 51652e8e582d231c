"""QEMU guests: `/nodes/{node}/qemu`.

`drives`, `networks` and `devices` parse and print devices, `disks` allocates volumes for them, and `copies`
copies them. `options` lists the privilege that each option needs. `pending` stages changes and applies them
by the rules of `hotplug`. `memory` saves the memory of a VM. `local_volumes` and `migration` move one to
another node. `userdata` is the data for cloud-init. The other modules are routes.
"""
