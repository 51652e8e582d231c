"""Ceph: `/nodes/{node}/ceph` and `/cluster/ceph`. The cluster itself is in `lab.ceph`."""
