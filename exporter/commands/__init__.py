"""Commands: `ackscope exporter`, `diagnose`, `bundle`."""
