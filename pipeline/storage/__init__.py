"""Files: the landing folder (read; bad files are quarantined) and the rollup folder (written)."""
