"""The inside of guests: what one finds after logging in to one that runs.

`machine` is the seam: a `GuestMachine` runs commands, tells who may log in, and stops; `Machines` finds the
machine of a guest. There are several kinds behind it:

- `recorded`: no program runs; a fixed set of commands is answered, everything else is refused by name;
- `sandbox`: programs of this machine run in a root directory of the guest's own, in namespaces of its own
  (bubblewrap), with `apt-get`, `systemctl`, `useradd` and their kin as shims that change the guest's records.

The SSH side, `pct exec` and the guest agent come here; nothing here knows of SSH or of HTTP.
"""
