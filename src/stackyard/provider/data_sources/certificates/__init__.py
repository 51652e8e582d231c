"""The accounts and plugins of ACME to order certificates with."""
