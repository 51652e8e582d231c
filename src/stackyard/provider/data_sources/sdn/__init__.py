"""SDN zones, vnets, subnets, controllers and fabrics, read only."""
