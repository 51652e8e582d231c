"""What is highly available: the guests that the manager of the cluster keeps running."""
