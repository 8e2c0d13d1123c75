"""Random states of every widget, as hypothesis strategies that make the widgets."""

import json
import re
from ast import literal_eval

import numpy as np
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from attnlib import widgets
from attnlib.masks import causal_mask
from attnlib.models import causal_lm
from attnlib.widgets import flow
from attnlib.widgets.kit.base import bounds
from tests.helpers import steady

# What a picture never says by itself; hypothesis likes to make sentences of it.
GIBBERISH = re.compile(r"NaN|Infinity|undefined|\[object")
# What no widget may take for markup, as text or as an attribute; a word, as it has no space.
HOSTILE = '"><img/src=x/onerror="document.title=1"></script><!--&amp;\''


def texts(most, without):
    """Texts of up to so many characters, none of these categories, no gibberish; or hostile."""
    letters = st.characters(exclude_categories=without)
    plain = st.text(letters, min_size=1, max_size=most).filter(
        lambda text: text.strip() and not GIBBERISH.search(text)
    )
    return plain | st.just(HOSTILE)


def matrices(most):
    """A strategy for the rows of a matrix of this shape, of entries down to minus `most`."""
    entries = st.floats(-most, most).map(lambda x: round(x, 2) + 0.0)

    def shaped(rows, columns):
        row = st.lists(entries, min_size=columns, max_size=columns)
        return st.lists(row, min_size=rows, max_size=rows)

    return shaped


sentences = texts(40, ["C"])
numbers = st.floats(-4, 4).map(lambda x: round(x, 1) + 0.0)


def bounded(widget, **others):
    """A strategy for each trait whose values its widget declares, and `others` in their place."""
    found = {}
    for name, bound in bounds(widget).items():
        if isinstance(bound, list):
            found[name] = st.sampled_from(bound)
        elif bound:
            range_of = st.integers if bound["whole"] else st.floats
            found[name] = range_of(bound["least"], bound["most"])
    return found | others


@st.composite
def predictions(draw):
    """A Predict of one to three numbers, in which some of its mistakes may have been typed."""
    n = draw(st.integers(1, 3))
    # Three units between any two outcomes: no typing can mean both.
    answer = [draw(numbers) for _ in range(n)]
    name = draw(st.sampled_from(["", HOSTILE]))
    mistakes = {f"{name}mistake {i}": [x + 3 * i for x in answer] for i in (1, 2, 3)}
    typed = draw(st.sampled_from([[], answer, *mistakes.values(), [x + 1.5 for x in answer]]))
    return widgets.Predict(
        draw(sentences),
        answer,
        labels=[f"{name}n{i}" for i in range(n)],
        mistakes=mistakes,
        unit=draw(st.sampled_from(["", "GB", HOSTILE])),
        explanation=draw(sentences),
        key="a-key",
        typed=typed,
        revealed=draw(st.booleans()),
    )


@st.composite
def quizzes(draw):
    """A Quiz of two questions with three options each, some of them chosen."""
    questions = []
    for _ in range(2):
        texts = draw(st.lists(sentences, min_size=3, max_size=3, unique=True))
        right = draw(st.integers(0, 2))
        options = [
            {"text": t, "why": draw(sentences), "right": k == right} for k, t in enumerate(texts)
        ]
        questions.append({"text": draw(sentences), "options": options})
    chosen = [draw(st.integers(-1, 2)) for _ in range(2)]
    return widgets.Quiz(questions, key="a-quiz", chosen=chosen)


@st.composite
def guesses(draw):
    """A Guess between three choices, one of which may have been tapped."""
    names = draw(st.lists(sentences, min_size=3, max_size=3, unique=True))
    return widgets.Guess(
        draw(sentences),
        {name: draw(sentences) for name in names},
        right=draw(st.sampled_from(names)),
        key="a-guess",
        plays=draw(st.sampled_from(["", "plane.sentence=money", "plane-2.asks=1&flow.stage=qkv"])),
        chosen=draw(st.sampled_from(["", *names])),
    )


@st.composite
def walks(draw):
    """A Backwards with any numbers, at any of its stages, with any entry looked at."""
    matrix = matrices(2)
    name, (rows, columns) = draw(st.sampled_from(list(widgets.backwards.SHAPES.items())))
    return widgets.Backwards(
        x=draw(matrix(2, 4)),
        **{w: draw(matrix(4, 2)) for w in ("w_q", "w_k", "w_v")},
        row=draw(st.integers(0, 1)),
        column=draw(st.integers(0, 1)),
        causal=draw(st.booleans()),
        stage=draw(st.sampled_from(widgets.backwards.STAGES)),
        cell=f"{name}.{draw(st.integers(0, rows - 1))}.{draw(st.integers(0, columns - 1))}",
        nudge=draw(st.integers(-20, 20)) / 20,
    )


@st.composite
def configurations(draw):
    """A ConfigReader of a published model whose sizes are other numbers."""
    config = dict(draw(st.sampled_from(list(widgets.config_reader.PUBLISHED.values()))))
    for name in ("num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"):
        config[name] = draw(st.integers(1, 200))
    # Nothing else of a configuration decides whether its heads can share.
    config["num_key_value_heads"] = config["num_attention_heads"]
    if config["model_type"] == "qwen3" and draw(st.booleans()):
        config |= {"sliding_window": draw(st.integers(1, 9000)), "use_sliding_window": True}
        config["max_window_layers"] = draw(st.integers(0, 40))
    config["tie_word_embeddings"] = draw(st.booleans())
    return widgets.ConfigReader(config=json.dumps(config), tokens=draw(st.integers(1, 2**20)))


@st.composite
def costs(draw):
    heads, group = draw(st.integers(1, 24)), draw(st.integers(1, 8))
    return widgets.CostCalculator(
        n=draw(st.integers(1, 2**20)),
        n_heads=heads * group,
        group=group,
        d_model=heads * group * draw(st.integers(1, 128)),
        n_layers=draw(st.integers(1, 100)),
        bytes=draw(st.sampled_from([8, 4, 2, 1])),
        kind=draw(st.sampled_from(widgets.cost_calculator.KINDS)),
        width=draw(st.integers(0, 2**20)),
        memory=draw(st.floats(1e-3, 1e6)),
    )


def arrays(draw, shapes):
    """Rows of numbers of these shapes, by name; what has one axis is a row of its own."""
    return {
        name: draw(matrices(3)(*shape)) if len(shape) == 2 else draw(matrices(3)(1, *shape))[0]
        for name, shape in shapes.items()
    }


@st.composite
def flows(draw):
    """A Flow with any of its parts, at any of its stages."""
    n, d_model, d_k, d_v, heads = (draw(st.integers(1, most)) for most in (6, 4, 4, 3, 2))

    def named(most, least=1):
        return draw(st.lists(texts(12, ["Z", "C"]), min_size=least, max_size=most))

    given, width = {"tokens": named(n, n), "heads": heads}, heads * d_v
    shapes = {"x": (n, d_model), "w_q": (d_model, heads * d_k), "w_k": (d_model, heads * d_k)}
    shapes["w_v"] = (d_model, width)
    if draw(st.booleans()):
        shapes["w_o"], width = (width, d_model), d_model
        if draw(st.booleans()):
            d_ff, given["layer"] = draw(st.integers(1, 3)), True
            shapes |= {"w_1": (d_model, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d_model)}
            shapes["b_2"] = (d_model,)
    if draw(st.booleans()):
        given["memory_tokens"] = named(4)
        shapes["memory"] = (len(given["memory_tokens"]), d_model)
    else:
        given["mask"] = draw(st.sampled_from(flow.MASKS))
    if draw(st.booleans()):
        given["vocabulary"] = named(3, 2)
        shapes["w_vocab"] = (width, len(given["vocabulary"]))
    made = widgets.Flow(**given, **arrays(draw, shapes), head=draw(st.integers(0, heads - 1)))
    made.stage = draw(st.sampled_from(flow.stages(made.state)))
    return made


@st.composite
def writers(draw):
    """A Flow whose model writes: random numbers of any shape, any of its parts switched off."""
    d_model, d_k, d_v, d_ff = (draw(st.integers(1, most)) for most in (5, 2, 3, 2))
    known = draw(st.lists(texts(8, ["Z", "C"]), min_size=1, max_size=5, unique=True))
    known = list(dict.fromkeys("".join(word.split()) for word in known))
    given = {"known": known, "vocabulary": [*known[:2], "<end>"]}
    shapes = {
        "embeddings": (len(known), d_model), "w_vocab": (d_model, len(given["vocabulary"])),
        "w_q": (d_model, d_k), "w_k": (d_model, d_k), "w_v": (d_model, d_v), "w_o": (d_v, d_model),
        "w_1": (d_model, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d_model), "b_2": (d_model,),
    }  # fmt: skip
    text = draw(st.lists(st.sampled_from(known), min_size=1, max_size=5))
    given["tokens"] = [*text, *draw(st.sampled_from([[], ["<end>"]]))]
    given["columns"] = draw(st.sampled_from([[], [f"column{k}" for k in range(d_model)]]))
    given |= {part: draw(st.booleans()) for part in ("attention", "residual", "feed_forward")}
    made = widgets.Flow(**given, **arrays(draw, shapes), layer=True)
    made.stage = draw(st.sampled_from(flow.stages(made.state)))
    return made


@st.composite
def trials(draw):
    """What was recorded of two models that guess letters."""
    n = draw(st.integers(2, 8))
    some_letters = st.text("abcdefghij", min_size=n, max_size=n)
    weight = st.floats(0, 1).map(lambda x: round(x, 2))
    row = st.lists(weight, min_size=n, max_size=n)

    def run():
        return {
            "guesses": draw(some_letters),
            "weights": draw(st.lists(row, min_size=n, max_size=n)),
            "learns": draw(st.integers(0, 100)),
            "writes": draw(st.integers(0, 100)),
        }

    letters = draw(st.text("abcdefghij", min_size=n + 1, max_size=n + 1))
    return {"letters": letters, "off": run(), "on": run()}


@st.composite
def painters(draw, *scenes):
    n = draw(st.integers(2, 8))
    row = st.lists(st.booleans(), min_size=n, max_size=n)
    scene = draw(st.sampled_from(scenes or widgets.mask_painter.SCENES))
    return widgets.MaskPainter(
        scene,
        tokens=draw(st.lists(texts(20, ["Z", "C"]), min_size=n, max_size=n)),
        trial=draw(trials()) if scene == "letters" else None,
        masked=draw(st.booleans()),
        traced=draw(st.integers(-1, 7)),
        position=draw(st.integers(0, n - 1)),
        length=draw(st.integers(1, n)),
        width=draw(st.integers(0, n - 1)),
        start=draw(st.integers(1, n - 1)),
        mask=draw(st.lists(row, min_size=n, max_size=n)),
        replaced=draw(st.integers(0, n - 1)),
    )


@st.composite
def planes(draw):
    """A Plane in any of its scenes, its words anywhere."""
    scene = draw(st.sampled_from(list(widgets.plane.SLOTS)))
    low, high = widgets.plane.BOUNDS.get(scene, (0, 0))  # what is learned has no words
    number = st.floats(low, high).map(lambda x: round(x, 1) + 0.0)
    place = st.lists(number, min_size=2, max_size=2)
    names = widgets.Plane(scene).words
    if scene == "words":
        names = draw(
            st.lists(
                texts(12, ["Cs"]).filter(widgets.plane.is_name), min_size=1, max_size=8, unique=True
            )
        )
    return widgets.Plane(
        scene,
        words={name: draw(place) for name in names},
        query=draw(st.lists(st.integers(-2, 3), min_size=2, max_size=2)),
        turn=draw(st.integers(-180, 180)),
        stretch=draw(st.integers(0, 60)) / 20,
        sentence=draw(st.sampled_from(["boat", "money"])),
        asks=draw(st.integers(0, 7)),
        sharpness=draw(st.integers(0, 80)) / 20,
        start=draw(st.integers(0, 999)),
        step=draw(st.integers(0, 200)) / 2,
        rate=draw(st.sampled_from([0.03, 0.3, 1, 2, 10])),
        teacher=draw(st.sampled_from(["entry", "cost"])),
        compact=draw(st.booleans()),
    )


# The tip of an arrow of DotProduct, in tenths.
TIPS = st.lists(st.integers(-13, 30).map(lambda tenth: tenth / 10), min_size=2, max_size=2)


def arrays_of(config):
    """Random arrays for a configuration, of the names and the shapes that `causal_lm` asks for."""
    arrays, rng = {}, np.random.default_rng(0)
    while True:
        try:
            causal_lm(config, arrays)
            return arrays
        except ValueError as error:
            asked = re.fullmatch(r"weights must have (\S+), of shape (.*); got none", str(error))
            assert asked, error
            shape = literal_eval(asked[2])
            arrays[asked[1]] = rng.normal(1 / (1 + len(shape)), 0.4, shape).astype(np.float32)


# A model of 2 layers with 3 heads reads a text, another one of which nothing is seen ahead, and a
# smaller one compares two texts.
weights = np.random.default_rng(0).dirichlet(np.full(5, 0.3), (2, 3, 5))
behind = causal_mask(3) * np.eye(3)[[0, 0, 2]]
TEXTS = {
    "a cat": (weights, "The cat sat on it".split()),
    "a <img>": (np.broadcast_to(behind, (2, 3, 3, 3)), ["A", HOSTILE, "ran"], None, causal_mask(3)),
    "crossed": (weights[:1, :2, :3], ["le", HOSTILE, "dort"], "The cat sat on it".split()),
}

# Sentences that are recorded, of 11, 12 and 6 tokens.
RECORDED = [
    "The cat sat down because it was tired.",
    "The dog chased the cat because it was hungry.",
    "Chai piyo",
]

SAMPLES = {
    widgets.Guess: guesses(),
    widgets.Predict: predictions(),
    widgets.Progress: st.builds(
        lambda titles, form: widgets.Progress(
            {title: {f"key-{i}": i + 1} for i, title in enumerate(titles)}, form=form
        ),
        st.lists(sentences, min_size=1, max_size=5, unique=True),
        st.sampled_from(["list", "bar", "keep"]),
    ),
    widgets.Quiz: quizzes(),
    widgets.Backwards: walks(),
    widgets.ConfigReader: configurations(),
    widgets.CostCalculator: costs(),
    widgets.DotProduct: st.builds(widgets.DotProduct, query=TIPS, key=TIPS),
    # What was not recorded takes the model seconds: test_encoder_views.py.
    widgets.Encoder: st.builds(
        widgets.Encoder,
        text=st.sampled_from(RECORDED),
        **bounded(widgets.Encoder, view=st.sampled_from(["heads", "lengths"])),
    )
    | st.builds(
        widgets.Encoder,
        **bounded(widgets.Encoder, view=st.sampled_from(["path", "search", "parts"])),
    ),
    widgets.Flow: flows() | writers(),
    widgets.MaskPainter: painters(),
    widgets.Plane: planes(),
}
# What other widgets take beside the values that they declare.
LETTERS = st.text("abcdefghijklmnop", min_size=1, max_size=24)
OTHERS = {
    "HeadsViewer": {
        "weights": st.just(TEXTS),
        "title": st.sampled_from(["", HOSTILE]),
        "text": st.integers(0, 2),
        "layer": st.integers(0, 1),
        "head": st.integers(0, 2),
        "row": st.integers(0, 4),
    },
    "Inspector": {
        "text": st.sampled_from([text for _, text, *_ in widgets.inspector.EXAMPLES]) | sentences,
        "other": st.sampled_from([widgets.inspector.EXAMPLES[1][2], "", HOSTILE]),
        "word": st.sampled_from(["", "boat", "muddy", HOSTILE]),
        "against": st.sampled_from(["", "busy", HOSTILE]),
    },
    "Letters": {
        "text": LETTERS,
        "off": st.lists(st.sampled_from([[0, 0], [0, 1], [1, 0], [1, 1]]), unique_by=str),
    },
    "PositionsExplorer": {"d_model": st.integers(1, 64).map(lambda pairs: 2 * pairs)},
    "ScalingExplorer": {"gap": st.integers(-20, 20).map(lambda half: half / 2)},
    # A run of 200 requests takes a second in the engine of the tests.
    "Server": {"requests": st.integers(1, 9)},
    "Trainer": {"text": LETTERS},
    "Writer": {
        "text": st.sampled_from(["Ada was a kind doctor.", "Rosa", "", "The dragon!"]) | sentences,
        "written": st.sampled_from(["", "she had always liked music .", "¶", HOSTILE]),
    },
}
for name in sorted(set(widgets.__all__) - {kind.__name__ for kind in SAMPLES}):
    kind = getattr(widgets, name)
    SAMPLES[kind] = st.builds(kind, **bounded(kind, **OTHERS.get(name, {})))


def every(*states, examples=25):
    """Run a test with so many random states of a widget, or values of other strategies."""
    strategies = [SAMPLES[each] if isinstance(each, type) else each for each in states]
    return lambda test: settings(steady, max_examples=examples)(given(*strategies)(test))


def simplest(widget):
    """The first state that hypothesis tries; to ask for the smallest one takes seconds."""
    first = settings(max_examples=1, phases=[Phase.generate], database=None)
    return find(SAMPLES[widget], lambda _: True, settings=first)
