"""What several pages share: the layout, its elements, and the cache of all sessions."""
