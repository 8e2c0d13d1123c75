"""What a chapter offers to download: its notebook in plain Markdown, and the library."""
