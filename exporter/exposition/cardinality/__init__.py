"""Cardinality limits: select the objects that get their own series, and sum up the others as the remainder."""
