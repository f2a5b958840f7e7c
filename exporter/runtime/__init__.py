"""Parts of the running exporter: run loop, reload, pollers, ingest, in-memory state."""
