"""Cardinality limits: which objects get series of their own, and the remainder of all others."""
