"""QEMU guests: `/nodes/{node}/qemu`.

`drives`, `networks` and `devices` read and print devices, `disks` allocates volumes for them, `copies` copies
them, `options` says which privilege each option needs, `pending` stages changes and applies them by the rules
of `hotplug`, `memory` writes the memory of a VM down, `local_volumes` and `migration` take one to another
node, `userdata` is what cloud-init tells it. The other modules are routes.
"""
