"""Labs inside guests: a guest that was made from an image of Proxmox VE is a node of its own.

`maker` puts such a node into the machine of a guest, `nest` knows the labs inside a lab, `uplink` is where
one is plugged in, and `reach` finds who answers at an address, in the labs inside and around.
"""
