"""Jobs of the cluster: backups and replication of guests."""
