"""Widgets on a page that has no kernel."""
