"""What is set on a node: name servers, the hosts file, the time zone, notes, and package repositories."""
