"""Polling: when each endpoint family of a cluster is read, what that costs the broker, and the latest good readings."""
