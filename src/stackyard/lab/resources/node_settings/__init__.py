"""Settings of one node, and turning it off and on: DNS, hosts, time, configuration, services, power.

Documents: `dns/<node>`, `hosts/<node>`, `timezones/<node>`, `node_config/<node>` and `services/<node>`. A
node without one has what a fresh installation has.
"""
