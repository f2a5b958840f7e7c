"""The exporter at work: run loop, reload, pollers, ingest, in-memory state."""
