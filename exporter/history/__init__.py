"""What the pipeline made of the past, read by the exporter: what is usual at this hour, and how far it is behind."""
