"""The firewall: options, rules, aliases, IP sets and security groups.

`config` loads and saves the configuration of a scope (cluster, node, guest), and `checks` verifies rules
with the data of `macros`. Each other module handles one kind of object for all scopes.
"""
