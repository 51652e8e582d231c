"""The firewall: options, rules, aliases, IP sets and security groups, of the cluster, nodes and guests."""
