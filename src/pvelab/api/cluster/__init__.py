"""The API below `/cluster`: what the nodes share, from options and backup jobs to HA, SDN and ACME."""
