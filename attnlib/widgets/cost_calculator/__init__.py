"""CostCalculator: a model and a text, how long its processor waits, and the memory they need."""

import traitlets

from attnlib.widgets.kit.base import CourseWidget, Whole

KINDS = ("full", "blockwise", "window", "grouped", "linear")
BLOCK = 128


class CostCalculator(CourseWidget):
    """What attention costs: the memory, and the share of its speed that a processor reaches.

    Parameters
    ----------
    n : int
        Tokens, 1 to 1,048,576.
    d_model, n_heads, n_layers : int
        Sizes of the model; `n_heads` divides `d_model`, and d_ff is 4 d_model.
    bytes : {1, 2, 4, 8}
        Bytes a number.
    kind : {"full", "blockwise", "window", "grouped", "linear"}
        What is done about the cost; grouped-query attention goes in blocks, too.
    width : int
        Of the sliding window: tokens on each side.
    group : int
        Heads that share keys and values, in grouped-query attention; divides `n_heads`.
    memory : float
        Gigabytes (10^9 bytes) that there are for A and the cache.

    Raises
    ------
    ValueError
        For a size outside its range, or one that does not divide as it must.
    traitlets.TraitError
        For a value of the wrong type, or a choice that does not exist.
    """

    n = Whole(1, 2**20, 4096).tag(sync=True)
    d_model = Whole(1, 65536, 512).tag(sync=True)
    n_heads = Whole(1, 1024, 8).tag(sync=True)
    n_layers = Whole(1, 1024, 6).tag(sync=True)
    bytes = traitlets.Enum((8, 4, 2, 1), 4).tag(sync=True)
    kind = traitlets.Enum(KINDS, "full").tag(sync=True)
    width = Whole(0, 2**20, 256).tag(sync=True)
    group = Whole(1, 1024, 4).tag(sync=True)
    memory = traitlets.Float(24.0).tag(sync=True)

    @traitlets.validate("d_model", "n_heads", "group")
    def _check_size(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        sizes = {key: getattr(self, key) for key in ("d_model", "n_heads", "group")} | {name: value}
        for whole, part in (("d_model", "n_heads"), ("n_heads", "group")):
            if name in (whole, part) and sizes[whole] % sizes[part]:
                raise ValueError(
                    f"{part} must divide {whole}; got {sizes[part]} and {sizes[whole]}"
                )
        return value

    @traitlets.validate("memory")
    def _check_memory(self, proposal):
        if not 0 < proposal["value"] <= 1e6:
            raise ValueError(f"memory must lie above 0 and up to 1e6; got {proposal['value']}")
        return proposal["value"]

    def at(self, n):
        """Work and memory at `n` tokens: Eqs. (1) to (4) of "What it costs".

        Returns a dict. "projections", "attention" and "feed_forward" are FLOPs of one layer;
        "weights" are the bytes of A, or of what stands in its place, in one layer; "cache" the
        bytes that a decoder keeps, in all layers. "reading" and "writing" are the FLOPs that
        scores and blend do for each byte moved: for all of a prompt, and for one token after it.
        """
        kind, width, d_k = self.kind, self.width, self.d_model // self.n_heads
        square = self.d_model**2
        shared = self.group if kind == "grouped" else 1
        pairs, kept = n * n, n  # of queries and keys, in each head; keys that a decoder still needs
        if kind == "window" and width < n:
            pairs, kept = n * (2 * width + 1) - width * (width + 1), width + 1
        state = self.n_heads * d_k**2  # linear attention keeps one (d_k, d_k) a head
        block = min(BLOCK, n) * n
        written = {"blockwise": 0, "grouped": 0, "linear": 0}.get(kind, self.n_heads * pairs)
        in_memory = {"blockwise": block, "grouped": block, "linear": state}.get(kind, written)
        cached = state if kind == "linear" else 2 * kept * self.d_model / shared
        met = n * d_k if kind == "linear" else pairs
        times = -(-n // BLOCK) if kind in ("blockwise", "grouped") else 1  # that keys are fetched
        # Queries and output; keys and values; scores and A, each of them written and fetched.
        moved = 2 * n * self.d_model * (1 + times / shared) + 4 * written
        fetched = 2 * self.d_model + (2 * state if kind == "linear" else cached)
        attention = 4 * met * self.d_model
        one_row = 4 * (d_k if kind == "linear" else kept) * self.d_model
        return {
            "projections": 4 * n * square + 4 * n * square / shared,
            "attention": attention,
            "feed_forward": 16 * n * square,
            "weights": self.bytes * in_memory,
            "cache": self.n_layers * self.bytes * cached,
            "reading": attention / (moved * self.bytes) if n else 0.0,
            "writing": one_row / (fetched * self.bytes),
        }
