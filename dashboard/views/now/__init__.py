"""The page "Now"."""
