"""The Ceph cluster as its monitors see it: its health and who is in the quorum."""
