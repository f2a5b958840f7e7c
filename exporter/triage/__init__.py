"""Triage: acknowledge findings, mute them, name their owner."""
