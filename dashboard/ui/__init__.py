"""Parts shared by several pages: the layout, its elements, and the cache of all sessions."""
