"""Store what `Inspector` shows before it has the model: `python -m tools.record_inspector`.

The means of what the heads pass on come first, because the interventions use them. Repeat this
when the model that writes has been trained again.
"""

import json

from attnlib.widgets import inspector
from tools.install import say


def main():
    """Record the means and the texts, and say how large the recording is."""
    recorded = {"means": inspector.mean_outputs().tolist(), "texts": []}
    inspector.RECORDED.write_text(json.dumps(recorded), encoding="utf-8")
    inspector.recording.cache_clear()
    recorded["texts"] = [inspector.record(*example) for example in inspector.EXAMPLES]
    text = json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n"
    inspector.RECORDED.write_text(text, encoding="utf-8")
    say(f"{len(text) / 1e3:.0f} kB in {inspector.RECORDED.name}")


if __name__ == "__main__":
    main()
