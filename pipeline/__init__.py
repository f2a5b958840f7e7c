"""PySpark: landing files to rollups. `jobs` is the only place with I/O; nobody imports this room."""
