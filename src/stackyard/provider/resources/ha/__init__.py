"""High availability: what the manager of the cluster keeps running, and the rules of where it may run."""
