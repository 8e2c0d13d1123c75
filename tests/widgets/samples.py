"""Random states of every widget, as hypothesis strategies that make the widgets."""

import re

import numpy as np
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from attnlib import atlas
from attnlib.masks import causal_mask
from attnlib.widgets import (
    AttentionExplorer,
    Backwards,
    CostCalculator,
    Encoder,
    Flow,
    HeadsViewer,
    LayerExplorer,
    Letters,
    MaskPainter,
    ParityAtlas,
    Plane,
    PositionsExplorer,
    Predict,
    Progress,
    Quiz,
    ScalingExplorer,
    ThenAndNow,
    backwards,
    plane,
    positions_explorer,
)
from attnlib.widgets.attention_explorer import MASKS
from attnlib.widgets.cost_calculator import KINDS
from attnlib.widgets.encoder import VIEWS
from attnlib.widgets.flow import MASKS as MASKED
from attnlib.widgets.heads_viewer import LINES
from attnlib.widgets.kit.constants import DIVISORS
from attnlib.widgets.layer_explorer import NORMS
from attnlib.widgets.mask_painter import SCENES
from attnlib.widgets.parity_atlas import FUNCTIONS
from attnlib.widgets.then_and_now import PARTS

# What a picture never says by itself; hypothesis likes to make sentences of it.
GIBBERISH = re.compile(r"NaN|Infinity|undefined|\[object")


def texts(most, without):
    """Texts of up to so many characters, none of these categories, that are no gibberish."""
    letters = st.characters(exclude_categories=without)
    return st.text(letters, min_size=1, max_size=most).filter(
        lambda text: text.strip() and not GIBBERISH.search(text)
    )


words = st.lists(texts(12, ["Z", "C"]), min_size=1, max_size=13)

sentences = texts(40, ["C"])
numbers = st.floats(-4, 4).map(lambda x: round(x, 1) + 0.0)


@st.composite
def predictions(draw):
    """A Predict of one to three numbers, in which some of its mistakes may have been typed."""
    n = draw(st.integers(1, 3))
    # Three units between any two outcomes: no typing can mean both.
    answer = [draw(numbers) for _ in range(n)]
    mistakes = {f"mistake {i}": [x + 3 * i for x in answer] for i in (1, 2, 3)}
    typed = draw(st.sampled_from([[], answer, *mistakes.values(), [x + 1.5 for x in answer]]))
    return Predict(
        draw(sentences),
        answer,
        labels=[f"n{i}" for i in range(n)],
        mistakes=mistakes,
        unit=draw(st.sampled_from(["", "GB"])),
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
    return Quiz(questions, key="a-quiz", chosen=[draw(st.integers(-1, 2)) for _ in range(2)])


@st.composite
def walks(draw):
    """A Backwards with any numbers, at any of its stages, with any entry looked at."""
    entries = st.floats(-2, 2).map(lambda x: round(x, 2) + 0.0)

    def matrix(rows, columns):
        row = st.lists(entries, min_size=columns, max_size=columns)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    name, (rows, columns) = draw(st.sampled_from(list(backwards.SHAPES.items())))
    return Backwards(
        x=matrix(2, 4),
        **{w: matrix(4, 2) for w in ("w_q", "w_k", "w_v")},
        row=draw(st.integers(0, 1)),
        column=draw(st.integers(0, 1)),
        causal=draw(st.booleans()),
        stage=draw(st.sampled_from(backwards.STAGES)),
        cell=f"{name}.{draw(st.integers(0, rows - 1))}.{draw(st.integers(0, columns - 1))}",
        nudge=draw(st.integers(-20, 20)) / 20,
    )


@st.composite
def costs(draw):
    heads, group = draw(st.integers(1, 24)), draw(st.integers(1, 8))
    return CostCalculator(
        n=draw(st.integers(1, 2**20)),
        n_heads=heads * group,
        group=group,
        d_model=heads * group * draw(st.integers(1, 128)),
        n_layers=draw(st.integers(1, 100)),
        bytes=draw(st.sampled_from([8, 4, 2, 1])),
        kind=draw(st.sampled_from(KINDS)),
        width=draw(st.integers(0, 2**20)),
        memory=draw(st.floats(1e-3, 1e6)),
    )


@st.composite
def flows(draw):
    """A Flow with any of its parts, at any of its stages."""
    n, d_model, d_k, d_v, heads = (draw(st.integers(1, most)) for most in (6, 4, 4, 3, 2))
    entries = st.floats(-3, 3).map(lambda x: round(x, 2) + 0.0)

    def matrix(rows, columns):
        row = st.lists(entries, min_size=columns, max_size=columns)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    def named(most, least=1):
        return draw(st.lists(texts(12, ["Z", "C"]), min_size=least, max_size=most))

    given = {"tokens": named(n, n), "x": matrix(n, d_model), "heads": heads}
    given |= {w: matrix(d_model, heads * d) for w, d in (("w_q", d_k), ("w_k", d_k), ("w_v", d_v))}
    width = heads * d_v
    if draw(st.booleans()):
        given["w_o"], width = matrix(width, d_model), d_model
        if draw(st.booleans()):
            d_ff = draw(st.integers(1, 3))
            given |= {"layer": True, "w_1": matrix(d_model, d_ff), "b_1": matrix(1, d_ff)[0]}
            given |= {"w_2": matrix(d_ff, d_model), "b_2": matrix(1, d_model)[0]}
    if draw(st.booleans()):
        given["memory_tokens"] = named(4)
        given["memory"] = matrix(len(given["memory_tokens"]), d_model)
    else:
        given["mask"] = draw(st.sampled_from(MASKED))
    if draw(st.booleans()):
        given["vocabulary"] = named(3, 2)
        given["w_vocab"] = matrix(width, len(given["vocabulary"]))
    made = Flow(**given, head=draw(st.integers(0, heads - 1)))
    made.stage = draw(st.sampled_from(made.stages))
    return made


@st.composite
def painters(draw):
    n = draw(st.integers(2, 8))
    row = st.lists(st.booleans(), min_size=n, max_size=n)
    return MaskPainter(
        tokens=draw(st.lists(texts(20, ["Z", "C"]), min_size=n, max_size=n)),
        mask=draw(st.lists(row, min_size=n, max_size=n)),
        length=draw(st.integers(1, n)),
        replaced=draw(st.integers(0, n - 1)),
        scene=draw(st.sampled_from(SCENES)),
        position=draw(st.integers(0, n - 1)),
    )


@st.composite
def planes(draw):
    """A Plane in any of its scenes, its words anywhere."""
    scene = draw(st.sampled_from(list(plane.SLOTS)))
    low, high = plane.BOUNDS.get(scene, (0, 0))  # what is learnt has no words
    number = st.floats(low, high).map(lambda x: round(x, 1) + 0.0)
    place = st.lists(number, min_size=2, max_size=2)
    names = Plane(scene).words
    if scene == "words":
        names = draw(
            st.lists(texts(12, ["Cs"]).filter(plane.is_name), min_size=1, max_size=8, unique=True)
        )
    return Plane(
        scene,
        words={name: draw(place) for name in names},
        query=draw(st.lists(st.integers(-2, 3), min_size=2, max_size=2)),
        turn=draw(st.integers(-180, 180)),
        stretch=draw(st.integers(0, 60)) / 20,
        sentence=draw(st.sampled_from(["boat", "money"])),
        asks=draw(st.integers(0, 7)),
        sharpness=draw(st.integers(0, 80)) / 20,
        ruler=draw(st.booleans()),
        start=draw(st.integers(0, 999)),
        step=draw(st.integers(0, 200)) / 2,
        rate=draw(st.sampled_from([0.03, 0.3, 1, 2, 10])),
        teacher=draw(st.sampled_from(["entry", "cost"])),
        compact=draw(st.booleans()),
    )


# Two texts of a model of 2 layers with 3 heads; nothing of the second one is seen ahead.
weights = np.random.default_rng(0).dirichlet(np.full(5, 0.3), (2, 3, 5))
behind = causal_mask(3) * np.eye(3)[[0, 0, 2]]
TEXTS = {
    "a cat": ("The cat sat on it".split(), weights),
    "a <b>": (["A", "<b>", "ran"], np.broadcast_to(behind, (2, 3, 3, 3)), causal_mask(3)),
}

# Sentences that are recorded, of 11, 12 and 6 tokens.
RECORDED = [
    "The cat sat down because it was tired.",
    "The dog chased the cat because it was hungry.",
]
RECORDED += ["Chai piyo"]

SAMPLES = {
    AttentionExplorer: st.builds(
        AttentionExplorer,
        sentence=words.map(" ".join),
        d_k=st.integers(1, 512),
        mask=st.sampled_from(MASKS),
        length=st.integers(1, 64),
        width=st.integers(0, 63),
        divisor=st.sampled_from(list(DIVISORS)),
        row=st.integers(0, 63),
    ),
    Predict: predictions(),
    Progress: st.builds(
        lambda titles, form: Progress(
            {title: {f"key-{i}": i + 1} for i, title in enumerate(titles)}, form=form
        ),
        st.lists(sentences, min_size=1, max_size=5, unique=True),
        st.sampled_from(["list", "bar", "keep"]),
    ),
    Quiz: quizzes(),
    Backwards: walks(),
    CostCalculator: costs(),
    Encoder: st.builds(
        Encoder,
        view=st.sampled_from(VIEWS),
        compact=st.booleans(),
        text=st.sampled_from(RECORDED),
        layer=st.integers(0, 5),
        head=st.integers(0, 11),
        row=st.integers(0, 63),
        word=st.sampled_from(["bank", "the", "to (2)", "[CLS]"]),
        after=st.integers(0, 6),
        only=st.integers(0, 6),
    ),
    Flow: flows(),
    MaskPainter: painters(),
    LayerExplorer: st.builds(
        LayerExplorer,
        residual=st.booleans(),
        norm=st.sampled_from(NORMS),
        feed_forward=st.booleans(),
        depth=st.integers(1, 24),
        seed=st.integers(0, 999),
    ),
    Letters: st.builds(
        Letters,
        text=st.text("abcdefghijklmnop", min_size=1, max_size=24),
        place=st.integers(0, 23),
        off=st.lists(st.sampled_from([[0, 0], [0, 1], [1, 0], [1, 1]]), unique_by=str),
        model=st.sampled_from(["priced", "unpriced"]),
    ),
    Plane: planes(),
    ThenAndNow: st.builds(
        ThenAndNow,
        part=st.sampled_from(PARTS),
        **dict.fromkeys(PARTS, st.booleans()),
    ),
    PositionsExplorer: st.builds(
        PositionsExplorer,
        kind=st.sampled_from(positions_explorer.KINDS),
        position=st.integers(0, 63),
        d_model=st.integers(1, 64).map(lambda pairs: 2 * pairs),
        base=st.floats(2, 1e6),
        head=st.integers(0, 7),
        scene=st.sampled_from(positions_explorer.SCENES),
        distance=st.integers(0, 16),
        swapped=st.booleans(),
        placed=st.booleans(),
    ),
    HeadsViewer: st.builds(
        HeadsViewer,
        st.just(TEXTS),
        text=st.integers(0, 1),
        layer=st.integers(0, 1),
        head=st.integers(0, 2),
        row=st.integers(0, 4),
        lines=st.sampled_from(LINES),
    ),
    ParityAtlas: st.builds(
        ParityAtlas,
        function=st.sampled_from(FUNCTIONS),
        mask=st.sampled_from(list(atlas.MASKS)),
        mode=st.sampled_from(atlas.MODES),
        outcome=st.sampled_from(["all", *atlas.OUTCOMES]),
    ),
    ScalingExplorer: st.builds(
        ScalingExplorer, d_k=st.integers(1, 1024), divisor=st.sampled_from(list(DIVISORS))
    ),
}


def simplest(widget):
    """The first state that hypothesis tries; to ask for the smallest one takes seconds."""
    first = settings(max_examples=1, phases=[Phase.generate], database=None)
    return find(SAMPLES[widget], lambda _: True, settings=first)
