"""Measurements against peers and limits, one command each, printing a table and JSON."""
