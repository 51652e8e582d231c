"""Real guests: QEMU boots the user's image, behind the same interface as all other guests.

`programs` finds QEMU and its features here, `iso` writes the drive that cloud-init reads, `invocation`
converts the configuration of a VM to a command line, `disks` keeps its disks, and `qmp` sends commands
to QEMU and to the guest agent. `machine` and `maker` are the machines of the lab that use them.
"""
