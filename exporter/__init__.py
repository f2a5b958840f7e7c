"""Reading the broker and serving what was seen.

`app` is the only place that wires; nothing here decides what is wrong.
"""
