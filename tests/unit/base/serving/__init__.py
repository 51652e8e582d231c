"""Tests of the one door to serve HTTP, with real sockets."""
