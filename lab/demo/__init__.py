"""The demo: a private broker, a workload, the exporter, Prometheus, Spark and the dashboard."""
