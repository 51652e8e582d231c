"""The inside of guests: what a client finds after it logs in to a running guest.

`machine` is the interface: a `GuestMachine` runs commands, knows who may log in, and stops; `Machines`
finds the machine of a guest. There are several kinds:

- `recorded`: no program runs; a fixed set of commands is answered, every other one is refused by name;
- `sandbox`: programs of this machine run in the guest's own root directory and namespaces (bubblewrap),
  with `apt-get`, `systemctl`, `useradd` and similar programs as shims that change the guest's records;
- `qemu`: real VMs.

SSH, `pct exec` and the guest agent use this package; nothing here knows SSH or HTTP.
"""
