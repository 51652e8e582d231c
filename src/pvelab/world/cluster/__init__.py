"""The cluster as a whole: its nodes and quorum, log, resource pools, jobs and Ceph."""
