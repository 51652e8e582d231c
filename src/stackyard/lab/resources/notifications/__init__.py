"""Notifications: where they go and which go where, `/cluster/notifications`."""
