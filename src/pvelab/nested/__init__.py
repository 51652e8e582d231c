"""Labs inside guests: a guest that was created from an image of Proxmox VE is a node of its own.

`maker` puts such a node into the machine of a guest, `nest` knows the labs inside a lab, `uplink` connects
one to the lab around it, and `reach` finds what answers at an address, in the labs inside and around.
"""
