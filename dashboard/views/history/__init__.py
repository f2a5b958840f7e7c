"""The page "History", one module per section."""
