"""Ceph: how the cluster is."""
