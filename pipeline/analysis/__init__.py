"""Analyses of the rollups: baselines, change points and finding episodes."""
