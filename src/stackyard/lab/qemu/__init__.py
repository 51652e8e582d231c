"""Guests that are real: QEMU boots the image that the user gave, behind the same seam as all other guests.

`programs` finds QEMU and what it can do here, `iso` writes the drive that cloud-init reads, `invocation`
turns the configuration of a VM into a command line, `disks` keeps its disks, `talking` speaks with QEMU and
with the guest agent, and `machine` and `maker` are the machines of the lab that stand on them.
"""
