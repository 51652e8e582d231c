"""Users, tokens, groups, roles, realms and ACLs: `/access`.

Everything but realms is one file in Proxmox, so changes hold its lock (`user_file`) and their refusals say
what failed before they say why.
"""
