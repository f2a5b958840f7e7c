"""What rules about connections and channels share."""
