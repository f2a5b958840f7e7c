"""Files: landing folder (read, and bad files set apart) and rollup folder (written)."""
