"""Measurements compared with peers and limits; each command prints a table or JSON."""
