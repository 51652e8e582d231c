"""Replication: jobs that keep copies of guests' volumes on other nodes, and their runs."""
