"""The text of `/metrics`: metric declarations, collectors, cardinality limits, encoding, page cache."""
