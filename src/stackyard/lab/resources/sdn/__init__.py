"""Software-defined networks: `/cluster/sdn` and `/nodes/{node}/sdn`.

Zones, virtual networks, subnets, controllers and fabrics are written to a configuration that nothing uses
until it is applied: `running` keeps the copy in force, tells the two apart, and lets nodes take it over.
`objects` reads either or their difference, `locks` guards changes, `apply` is the way from one to the other.
Address management (`ipams`, `addresses`) and name servers (`dns`) have no pending state. Servers outside the
cluster are taken to answer; the lab does not call them.
"""
