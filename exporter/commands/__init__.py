"""Commands: `ackscope exporter`, `init`, `diagnose`, `bundle`, `files`."""
