"""Rules about connections and channels (X)."""
