"""The frame of every page: theme, head, colors, typefaces, and addresses that have moved."""
