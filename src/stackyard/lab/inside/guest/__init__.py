"""Programs that run inside a sandboxed guest: its init, cloud-init, and the shims.

They are run by the Python of the machine, in the guest's namespaces, as `guest` from `/run/lab/lib`; nothing
of stackyard is there. So they import the standard library and each other only, and stay with the Python of
older systems (3.9). What they know of the guest is in the guest's own files: `/etc/passwd` and its kin, the
status file of dpkg, and `/var/lib/stackyard-lab/*.json` for what Debian keeps in places of its own.
"""
