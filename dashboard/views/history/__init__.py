"""The page "History", one module a section."""
