"""SDN zones, vnets, subnets and the applier: written as pending, live once applied."""
