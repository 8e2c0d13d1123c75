"""Linked reading: symbols that light each other up, and equations as NumPy."""
