"""Servers that nodes send their metrics to."""
