"""The pipeline's rollups, read by the exporter: baselines of the current hour, and the pipeline's lag."""
