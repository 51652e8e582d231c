"""The fields of a guest: one row for each, with its names and the format of its value.

A row has the name of a field of the model in bpg's resource and in Proxmox's configuration, the format of its
value in Proxmox, and its default. `render` writes resources from the rows, `provider` writes and reads
Proxmox's configuration with them, and the import converts a configuration to the model. `table` has the form
of a row; `vm`, `container` and `guest` have the rows; `properties` has property strings.
"""
