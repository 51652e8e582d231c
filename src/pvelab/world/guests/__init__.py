"""Guests of both kinds as the lab keeps them: their documents, snapshots, addresses and list entries."""
