"""The encoder that runs in a page: its pieces and the scripts that use them."""
