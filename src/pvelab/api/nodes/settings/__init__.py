"""Settings of one node, and turning it off and on: DNS, hosts, time, configuration, subscription, power.

Documents: `dns/<node>`, `hosts/<node>`, `timezones/<node>` and `node_config/<node>`. A node without one has
the values of a fresh installation.
"""
