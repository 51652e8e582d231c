"""Users, tokens, groups, roles, realms and ACLs: `/access`.

Everything except realms is one file in Proxmox. So changes hold its lock (`user_file`), and refusals name
what failed before the reason.
"""
