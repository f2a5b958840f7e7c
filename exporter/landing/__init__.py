"""Landing files: Parquet files of everything observed, for the pipeline. `ackscope/tables.py` declares the tables."""
