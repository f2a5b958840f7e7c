"""Rules about how things are declared and configured (G)."""
