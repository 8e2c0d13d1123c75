"""Exercises that are solved in the page, in Python."""
