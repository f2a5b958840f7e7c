"""Polling: when each family of a cluster is read, at what price, and what was last good."""
