"""The firewall: options, rules, aliases, IP sets and security groups.

`config` loads and saves the configuration of a scope (cluster, node, guest), `checks` verifies rules with
the knowledge of `macros`; each other module binds one kind of thing for all scopes at once.
"""
