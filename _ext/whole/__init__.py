"""The whole course in one document: a page to read and to search, and the printed book."""
