"""Files in datastores."""
