"""Programs that run inside a sandboxed guest: its init, cloud-init, and the shims.

The Python of the machine runs them in the guest's namespaces, as `guest` from `/run/lab/lib`. Nothing of
stackyard is there. So they import only the standard library and each other, and support older Python (3.9).
They read the guest's own files: `/etc/passwd` and similar files, the status file of dpkg, and
`/var/lib/stackyard-lab/*.json` for what Debian keeps elsewhere.
"""
