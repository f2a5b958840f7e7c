"""Landing files: what was seen, as Parquet, for the pipeline. `ackscope/tables.py` declares the tables."""
