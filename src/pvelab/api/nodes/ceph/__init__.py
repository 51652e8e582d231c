"""Ceph: `/nodes/{node}/ceph` and `/cluster/ceph`. The cluster itself is in `pvelab.world.cluster.ceph`."""
