"""The history: a PySpark pipeline from landing files to rollups, analyses and answers.

Only `jobs` and the other job modules do I/O; no other room imports this one.
"""
