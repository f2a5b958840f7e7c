"""Rules about topology and configuration (G)."""
