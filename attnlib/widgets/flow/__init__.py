"""Flow: the way from tokens to output, or to the next word, as one picture that is stepped."""

import numpy as np
import traitlets

from attnlib.attention import scaled_dot_product_attention, softmax
from attnlib.feed_forward import FeedForward
from attnlib.models import gpt_by_hand
from attnlib.multihead import merge_heads, split_heads
from attnlib.norms import LayerNorm
from attnlib.widgets.kit.base import CourseWidget, Whole
from attnlib.widgets.kit.constants import ACROSS, CHAI_PIYO, STRAIGHT

LARGEST = 100
MOST = 6  # tokens, in the sentence and in the memory
WIDEST = 8  # numbers in a row of any matrix, of one head and of all
HEADS = 4
KNOWN = 10  # words in a table of embeddings

MASKS = ("none", "causal")
STAGES = (
    *("rows", "qkv", "scores", "scale", "mask", "softmax", "blend", "heads", "join"),
    *("add1", "think", "add2", "words", "shares", "whole"),
)


def _numbers():
    return traitlets.List().tag(sync=True)


class Flow(CourseWidget):
    """Follow the sentence: each word keeps its lane, and they mix where queries cross keys.

    Attention of one or several heads, from X or from a memory; then, where they are given, W_O,
    the rest of an encoder layer (Eqs. (5) and (6) of "The encoder layer") and the probabilities of
    the next word. Without arguments it shows the sentence "Chai piyo".

    With a table of embeddings it is a whole language model, which writes: the rows of the words
    come from the table, its layer has no norms, each of its parts can be switched off, and the word
    with the largest probability can be appended. The last word asks, and all words of the text
    answer, so that there is one lane. A word without a row, such as "<end>", ends the text.

    Parameters
    ----------
    tokens : list of str
        1 to 6 words.
    x : array_like, shape (n, d_model)
        One row a word. Every entry of every matrix lies between -100 and 100.
    w_q, w_k : array_like, shape (d_model, heads * d_k)
        The heads side by side.
    w_v : array_like, shape (d_model, heads * d_v)
    w_o : array_like, shape (heads * d_v, d_model), optional
    heads : int
        1 to 4.
    mask : {"none", "causal"}
    memory_tokens : list of str
    memory : array_like, shape (n_k, d_model), optional
        With it, keys and values are made from its rows: cross-attention.
    layer : bool
        Add residual, norm and feed-forward network, which need `w_o` and the four below.
    w_1, b_1, w_2, b_2 : array_like
        Shapes (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,).
    vocabulary : list of str
        The words that can be written next, 2 to 6.
    w_vocab : array_like, shape (width of the output, number of words)
    known : list of str
        The words that the model can read, 1 to 10; `tokens` are some of them.
    embeddings : array_like, shape (number of known words, d_model), optional
        One row for each known word; `x` follows from it. It needs `layer` and `vocabulary`, and no
        memory and no mask.
    columns : list of str
        What the numbers of a row are called, one name for each; none is fine.
    prompts : list of str
        Texts to choose from.
    attention, residual, feed_forward : bool
        Whether what attention has found is added, whether it is added to the word itself, and
        whether what the feed-forward network returns is added. Of a model with embeddings alone.
    head : int
        Which head is shown, from 0.
    stage : str
        How far the picture has come, one of `stages`.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a value outside its range.
    """

    tokens = traitlets.List(traitlets.Unicode(), ["Chai", "piyo"]).tag(sync=True)
    x = traitlets.List(default_value=CHAI_PIYO).tag(sync=True)
    w_q = traitlets.List(default_value=STRAIGHT).tag(sync=True)
    w_k = traitlets.List(default_value=ACROSS).tag(sync=True)
    w_v = traitlets.List(default_value=STRAIGHT).tag(sync=True)
    w_o = _numbers()
    heads = Whole(1, HEADS, 1).tag(sync=True)
    mask = traitlets.Enum(MASKS, "none").tag(sync=True)
    memory_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    memory = _numbers()
    layer = traitlets.Bool(False).tag(sync=True)
    w_1 = _numbers()
    b_1 = _numbers()
    w_2 = _numbers()
    b_2 = _numbers()
    vocabulary = traitlets.List(traitlets.Unicode()).tag(sync=True)
    w_vocab = _numbers()
    known = traitlets.List(traitlets.Unicode()).tag(sync=True)
    embeddings = _numbers()
    columns = traitlets.List(traitlets.Unicode()).tag(sync=True)
    prompts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    attention = traitlets.Bool(True).tag(sync=True)
    residual = traitlets.Bool(True).tag(sync=True)
    feed_forward = traitlets.Bool(True).tag(sync=True)
    head = Whole(0, HEADS - 1, 0).tag(sync=True)
    stage = traitlets.Enum(STAGES, "whole").tag(sync=True)

    def __init__(self, **traits):
        for name in set(traits) & set(_MATRICES):
            traits[name] = _read(name, traits[name])
        # Traits that fit each other are set together: on the way from one to another none would.
        self._complete = False
        super().__init__(**traits)
        self._check(super().state)
        self._complete = True
        if self.embeddings:
            self.x = _embed(super().state)
        else:
            self._shown = [name for name in self._shown if name not in _OF_A_WRITER]

    @property
    def state(self):
        """The state, as plain values; without a table of embeddings it has no part of a writer."""
        state = super().state
        left_out = set() if self.embeddings else _OF_A_WRITER
        return {name: value for name, value in state.items() if name not in left_out}

    @classmethod
    def two_heads(cls, **traits):
        """Return "Chai piyo" with two heads and W_O, as in "Many heads"."""
        both = np.hstack([STRAIGHT, STRAIGHT])
        w_o = [[1, 0, 1, 0], [0, 1, 0, 1], [-1, 0, 1, 0], [0, -1, 0, 1]]
        given = {"w_q": both, "w_k": np.hstack([ACROSS, STRAIGHT]), "w_v": both, "w_o": w_o}
        return cls(**(given | {"heads": 2} | traits))

    @classmethod
    def encoder_layer(cls, **traits):
        """Return "Chai piyo" through the whole layer, as in "The encoder layer"."""
        given = {
            "x": [[*row, 0] for row in CHAI_PIYO],
            "w_q": [*STRAIGHT, [0, 0]],
            "w_k": [*ACROSS, [0, 0]],
            "w_v": [*STRAIGHT, [0, 0]],
            "w_o": [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]],
            "w_1": [[0, 1], [1, 0], [1, 0], [0, 1], [0, 0]],
            "b_1": [-1.5, -1.5],
            "w_2": [[0, 0, 0, 0, 10], [0, 0, 0, 0, 10]],
            "b_2": [0, 0, 0, 0, 0],
        }
        return cls(**(given | {"layer": True} | traits))

    @classmethod
    def writing(cls, **traits):
        """Return a decoder that attends to the memory of "Chai piyo" and writes "drink tea"."""
        given = {
            "tokens": ["<start>", "drink", "tea"],
            "x": [*CHAI_PIYO, [0, 0, 0, 0]],
            "memory_tokens": ["Chai", "piyo"],
            "memory": CHAI_PIYO,
            "vocabulary": ["drink", "tea", "<end>"],
            "w_vocab": [[0, 2, 1.5], [2, 0, 1.5]],
        }
        return cls(**(given | traits))

    @classmethod
    def gpt(cls, **traits):
        """Return the model that continues "tea not bad" with "drink tea" and an end mark.

        Its numbers are those of `attnlib.models.gpt_by_hand`.
        """
        model, known = gpt_by_hand()
        attention, network = model.layers[0].attention, model.layers[0].feed_forward
        written = model.unembedding.shape[1]
        readable = [k for k, word in enumerate(known) if word != "<end>"]
        given = {
            "tokens": ["tea", "not", "bad"],
            "known": [known[k] for k in readable],
            "embeddings": model.embeddings[readable],
            "columns": ["verdict", "kind", "noun", "not", "seeks"],
            "prompts": [
                f"{drink} {said}"
                for drink in ("tea", "coffee")
                for said in ("good", "bad", "not good", "not bad")
            ],
            **{name: getattr(attention, name) for name in ("w_q", "w_k", "w_v", "w_o")},
            **{name: getattr(network, name) for name in ("w_1", "b_1", "w_2", "b_2")},
            "vocabulary": known[:written],
            "w_vocab": model.unembedding,
        }
        return cls(**(given | {"layer": True, "stage": "shares"} | traits))

    @traitlets.validate(
        "x", "memory", "w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_vocab", "embeddings"
    )
    def _check_matrix(self, proposal):
        return self._fitting(proposal["trait"].name, _read(proposal["trait"].name, proposal.value))

    @traitlets.validate("b_1", "b_2")
    def _check_vector(self, proposal):
        return self._fitting(proposal["trait"].name, _read(proposal["trait"].name, proposal.value))

    @traitlets.validate("heads", "mask", "layer", "head", "stage", "vocabulary", "known")
    def _check_choice(self, proposal):
        return self._fitting(proposal["trait"].name, proposal["value"])

    def _fitting(self, name, value):
        if self._complete:
            self._check(super().state | {name: value})
        return value

    def _check(self, state):
        """Say what does not fit, in a state in which every matrix has been read."""
        if state["embeddings"]:
            _check_writer(state)
            state = state | {"x": _embed(state)}
            state = state | {"tokens": state["tokens"][: len(state["x"])]}
        given = {name: np.shape(state[name]) for name in _MATRICES if state[name]}
        for name in ("x", "w_q", "w_k", "w_v"):
            if name not in given:
                raise ValueError(f"{name} needs rows of numbers; got none")
        heads, d_model = state["heads"], given["x"][1]
        d_heads = given["w_v"][1]
        wanted = {"w_q": (d_model, given["w_q"][1]), "w_k": (d_model, given["w_q"][1])}
        wanted["w_v"] = (d_model, d_heads)
        for name in ("w_q", "w_v"):
            if given[name][1] % heads:
                raise ValueError(f"{name} needs columns for {heads} heads; got {given[name][1]}")
        for tokens, rows in (("tokens", "x"), ("memory_tokens", "memory")):
            n = given.get(rows, (0,))[0]
            # Later the two change one after the other.
            if not self._complete and len(state[tokens]) != n:
                named = len(state[tokens])
                raise ValueError(f"{tokens} needs {n} words, one a row of {rows}; got {named}")
        if "memory" in given:
            wanted["memory"] = (given["memory"][0], d_model)
            if state["mask"] != "none":
                raise ValueError("mask needs to be 'none' where there is a memory")
        width = d_heads
        if "w_o" in given:
            wanted["w_o"], width = (d_heads, d_model), d_model
        parts = ("w_o", "w_1", "b_1", "w_2", "b_2")
        if state["layer"]:
            missing = [name for name in parts if name not in given]
            if missing:
                raise ValueError(f"layer needs {', '.join(parts)}; there is no {missing[0]}")
            d_ff = given["w_1"][1]
            wanted |= {"w_1": (d_model, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d_model)}
            wanted["b_2"] = (d_model,)
        if state["vocabulary"]:
            wanted["w_vocab"] = (width, len(state["vocabulary"]))
        for name, shape in wanted.items():
            if given.get(name) != shape:
                raise ValueError(f"{name} needs shape {shape}; got {given.get(name, 'nothing')}")
        if not 0 <= state["head"] < heads:
            raise ValueError(f"head needs a number from 0 to {heads - 1}; got {state['head']}")
        if state["stage"] not in (there := stages(state)):
            raise ValueError(f"stage needs one of {', '.join(there)}; got {state['stage']}")

    @property
    def _asking(self):
        """The rows that ask: X, or that of the last word of a model that writes."""
        return self._answering[-1:] if self.embeddings else self.x

    @property
    def _answering(self):
        """The rows that answer: the memory, those of the whole text, or X."""
        return _embed(super().state) if self.embeddings else self.memory or self.x

    def _project(self, rows, weights):
        projected = np.array(rows) @ np.array(weights)
        return split_heads(projected, self.heads) if self.heads > 1 else projected

    @property
    def Q(self):  # noqa: N802  the letter of the formula
        """Q = X W_Q, (n_q, d_k); like all arrays of several heads, these are the first axis."""
        return self._project(self._asking, self.w_q)

    @property
    def K(self):  # noqa: N802
        """K = X W_K, or M W_K with a memory, (n_k, d_k)."""
        return self._project(self._answering, self.w_k)

    @property
    def V(self):  # noqa: N802
        """V = X W_V, or M W_V with a memory, (n_k, d_v)."""
        return self._project(self._answering, self.w_v)

    def _attend(self):
        causal = self.mask == "causal"
        return scaled_dot_product_attention(self.Q, self.K, self.V, causal=causal)

    @property
    def scores(self):
        """S = Q K^T, not yet divided, (n_q, n_k)."""
        return self.Q @ self.K.swapaxes(-1, -2)

    @property
    def weights(self):
        """A, the attention weights, (n_q, n_k)."""
        return self._attend()[1]

    @property
    def output(self):
        """Z, the heads side by side, times W_O if there is one, (n_q, d)."""
        blended = self._attend()[0] * self.attention
        if self.heads > 1:
            blended = merge_heads(blended)
        return blended @ np.array(self.w_o) if self.w_o else blended

    @property
    def layer_output(self):
        """X'' of the layer, (n_q, d_model); without a layer the output."""
        if not self.layer:
            return self.output
        think = FeedForward(*(np.array(w, float) for w in (self.w_1, self.b_1, self.w_2, self.b_2)))
        x = np.array(self._asking) * self.residual + self.output
        if self.embeddings:
            return x + think(x) * self.feed_forward
        norm = LayerNorm()
        return norm(norm(x) + think(norm(x)))

    @property
    def shares(self):
        """Of every word in the vocabulary, after each token, (n_q, words); None without one."""
        return softmax(self.layer_output @ np.array(self.w_vocab)) if self.vocabulary else None


_MATRICES = (
    *("x", "memory", "w_q", "w_k", "w_v", "w_o", "w_1", "b_1", "w_2", "b_2"),
    *("w_vocab", "embeddings"),
)
_OF_A_WRITER = {
    *("known", "embeddings", "columns", "prompts"),
    *("attention", "residual", "feed_forward"),
}


def _read(name, value):
    """Return `value` as rows of numbers, or as one row for b_1 and b_2, or say what was needed."""
    try:
        matrix = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs rows of numbers; got {value!r}") from None
    if matrix.size == 0:
        return []
    ndim = 1 if name in ("b_1", "b_2") else 2
    rows = {"x": MOST, "memory": MOST, "embeddings": KNOWN}
    most = (rows.get(name, WIDEST), WIDEST)
    if matrix.ndim != ndim or any(s > m for s, m in zip(matrix.shape, most[-ndim:], strict=True)):
        bounds = f"at most {most[0]} rows of {WIDEST}" if ndim == 2 else f"at most {WIDEST}"
        raise ValueError(f"{name} needs {bounds} numbers; got shape {matrix.shape}")
    if not (np.abs(matrix) <= LARGEST).all():
        raise ValueError(f"{name} needs entries from -{LARGEST} to {LARGEST}; got {value!r}")
    return (matrix + 0.0).tolist()


def _embed(state):
    """Return the rows of the words up to the first without one, which ends the text."""
    rows = dict(zip(state["known"], state["embeddings"], strict=True))
    known = [token in rows for token in state["tokens"]]
    end = known.index(False) if False in known else len(known)
    return [rows[token] for token in state["tokens"][:end]]


def _check_writer(state):
    """Say what a model with a table of embeddings lacks."""
    known, rows = state["known"], len(state["embeddings"])
    if len(set(known)) != len(known) or len(known) != rows:
        raise ValueError(
            f"known needs {rows} different words, one a row of embeddings; got {known}"
        )
    if not (state["layer"] and state["vocabulary"]) or state["memory"] or state["mask"] != "none":
        raise ValueError("embeddings need a layer and a vocabulary, and no memory and no mask")
    width = len(state["embeddings"][0])
    if state["columns"] and len(state["columns"]) != width:
        raise ValueError(f"columns needs {width} names; got {state['columns']}")
    for text in (" ".join(state["tokens"]), *state["prompts"]):
        words = text.split()
        if words and words[-1] in state["vocabulary"] and words[-1] not in known:
            words.pop()  # the end mark
        unknown = [word for word in words if word not in known]
        if unknown or not 1 <= len(words) <= MOST:
            raise ValueError(f"a text needs 1 to {MOST} words out of {known}; got {text!r}")


def stages(state):
    """Return the names of the stages in order: those whose parts this state has."""
    there = {
        "scale": not _unscaled(state),
        "mask": state["mask"] == "causal",
        "heads": state["heads"] > 1,
        "join": bool(state["w_o"]),
        **dict.fromkeys(("add1", "think", "add2"), state["layer"]),
        **dict.fromkeys(("words", "shares"), bool(state["vocabulary"])),
    }
    return [stage for stage in STAGES if there.get(stage, True)]


def _unscaled(state):
    """Whether scores are divided by 1, which is no stage of a model that is worked by hand."""
    return bool(state.get("embeddings")) and len(state["w_q"][0]) == state["heads"]
