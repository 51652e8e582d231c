"""Software-defined networks: `/cluster/sdn` and `/nodes/{node}/sdn`.

Zones, virtual networks, subnets, controllers and fabrics are written to a pending configuration, which has
no effect until it is applied. `running` keeps the active copy, compares the two, and lets nodes load it.
`objects` reads either or their difference, `locks` guards changes, and `apply` activates the pending
configuration. Address management (`ipams`, `addresses`) and name servers (`dns`) have no pending state. The
lab does not call servers outside the cluster; it assumes that they answer.
"""
