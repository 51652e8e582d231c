"""Certificates of nodes, and the accounts and plugins of ACME to order them with."""
