"""Chaos: everything around the exporter breaks at random, and invariants are watched all the time."""
