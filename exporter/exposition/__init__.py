"""Makes the page `/metrics`: metric declarations, collectors, cardinality limits, encoding, page cache."""
