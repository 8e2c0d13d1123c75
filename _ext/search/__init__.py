"""The search: its index, and the window that asks it."""
