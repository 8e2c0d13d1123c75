"""What Sphinx needs to make the pages of this book: extensions, by room.

`_config.yml` lists them. What a page loads as it is stands in the folder `static` of its room.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
