"""Formulas, drawn while the book is built, with the styles and fonts that they need."""
