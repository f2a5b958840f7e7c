"""The running exporter: run loop, reload, pollers, ingest, in-memory state."""
