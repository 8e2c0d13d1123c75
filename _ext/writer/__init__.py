"""The model that writes stories in a page."""
