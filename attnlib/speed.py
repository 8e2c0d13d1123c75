"""What `make bench` measured of attention, by kind of processor, seconds and bytes by tokens."""

import json
from pathlib import Path

STORED = Path(__file__).parent / "data" / "speed.json"


def read():
    """Return {kind: {"processor": ..., "seconds": {name: {n: seconds}}, ...}}, each n as text."""
    return json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
