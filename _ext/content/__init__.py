"""What stands in the text of a page: figures, outputs, answers that open, glimpses of links."""
