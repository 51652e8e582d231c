"""SDN zones, vnets, subnets, controllers, fabrics and the applier: written as pending, live once applied."""
