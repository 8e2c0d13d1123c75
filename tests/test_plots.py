"""Figures: what is drawn, in which colors, the same bytes every time, and every error."""

import io
import re

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from attnlib import additive, causal_mask, plots
from attnlib.palette import ROLES, cell_ink, light

pytestmark = pytest.mark.filterwarnings("error")

N_Q, N_K = 3, 5
QUERIES, KEYS = ["The", "cat", "sat"], ["on", "the", "mat", "and", "slept"]
WEIGHTS = np.array([[0.1, 0.2, 0.3, 0.4, 0], [0, 0, 0, 0, 1.0], [0.7, 0.3, 0, 0, 0]])


@pytest.fixture(autouse=True)
def style():
    """Draw off screen in the course's style, and leave nothing behind."""
    with matplotlib.rc_context():
        plt.switch_backend("agg")
        plots.use_style()
        yield
        plt.close("all")


def svg(ax):
    """Return the figure as it reaches a page."""
    file = io.StringIO()
    ax.figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return file.getvalue()


def labels(axis):
    """Return the tick labels of an axis."""
    return [label.get_text() for label in axis.get_ticklabels()]


def written(ax):
    """Return what is written inside the Axes, by (row, column)."""
    return {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}


def squares(collection):
    """Return the (row, column) of each cell of a collection."""
    centers = [path.vertices[:4].mean(0) for path in collection.get_paths()]
    return [(round(y), round(x)) for x, y in centers]


def test_heatmap_labels_rows_and_columns():
    ax = plots.attention_heatmap(WEIGHTS, QUERIES, KEYS, title="Head 1")
    assert labels(ax.yaxis) == QUERIES
    assert labels(ax.xaxis) == KEYS
    assert ax.get_xlim() == (-0.5, N_K - 0.5)
    assert ax.get_ylim() == (N_Q - 0.5, -0.5)  # the first row is on top
    assert ax.xaxis.get_label_position() == "top"
    assert ax.xaxis.get_tick_params()["labeltop"]
    assert not ax.xaxis.get_tick_params()["labelbottom"]
    assert (ax.get_ylabel(), ax.yaxis.label.get_color()) == ("query", light("query"))
    assert (ax.get_xlabel(), ax.xaxis.label.get_color()) == ("key", light("key"))
    assert ax.get_title() == "Head 1"
    bare = plots.attention_heatmap(WEIGHTS)
    assert (labels(bare.yaxis), labels(bare.xaxis)) == (list("012"), list("01234"))


def test_heatmap_fills_each_cell_to_its_weight_and_writes_it():
    ax = plots.attention_heatmap(WEIGHTS)
    filled, masked = ax.collections[:2]
    opacity = dict(zip(squares(filled), filled.get_facecolor(), strict=True))
    for (i, j), weight in np.ndenumerate(WEIGHTS):
        if weight:
            np.testing.assert_allclose(opacity[i, j], to_rgba(light("weight"), weight))
        else:
            assert (i, j) not in opacity
    assert not masked.get_paths()
    assert written(ax) == {(i, j): f"{weight:.2f}" for (i, j), weight in np.ndenumerate(WEIGHTS)}
    for text in ax.texts:
        assert text.get_color() == light(cell_ink(float(text.get_text())))
    plots.attention_heatmap(np.full((1, 1), 1 + 1e-7))  # as float32 may sum up to


@pytest.mark.parametrize("as_float", [False, True])
def test_heatmap_hatches_what_is_masked(as_float):
    mask = causal_mask(N_Q, N_K)
    ax = plots.attention_heatmap(WEIGHTS, mask=additive(mask) if as_float else mask)
    masked = ax.collections[1]
    assert masked.get_hatch()
    assert sorted(squares(masked)) == [tuple(cell) for cell in np.argwhere(~mask)]
    assert sorted(written(ax)) == [tuple(cell) for cell in np.argwhere(mask)]
    assert f'stroke="{light("line")}"' in svg(ax) or f"stroke: {light('line')}" in svg(ax)
    assert "<pattern" in svg(ax)
    assert "<pattern" not in svg(plots.attention_heatmap(WEIGHTS))


def test_heatmap_leaves_numbers_and_labels_out_where_they_do_not_fit():
    many = np.full((41, 43), 1 / 43)
    ax = plots.attention_heatmap(many)
    assert not ax.texts
    assert labels(ax.xaxis)[:2] == ["0", "2"]
    rows = plots.attention_heatmap(np.full((97, 2), 0.5))
    shown = [int(label) for label in labels(rows.yaxis)]
    assert rows.get_yticks().tolist() == shown == list(range(0, 97, shown[1]))
    assert 1 < shown[1] < 5
    _, small = plt.subplots(figsize=(1.6, 1.6))
    written = {text.get_text() for text in plots.attention_heatmap(WEIGHTS, ax=small).texts}
    assert written == {".00", ".10", ".20", ".30", ".40", ".70", "1"}
    _, smaller = plt.subplots(figsize=(1.2, 1.2))
    assert not plots.attention_heatmap(WEIGHTS, ax=smaller).texts


@pytest.mark.parametrize(
    ("n", "label"),
    [(2, "slept"), (5, "internationalization"), (19, "internationalization"), (43, "x")],
)
def test_labels_and_numbers_do_not_overlap(n, label):
    ax = plots.attention_heatmap(np.full((n, n), 1 / n), [label] * n, [label] * n, title="Title")
    ax.figure.canvas.draw()
    rows, columns = ax.get_yticklabels(), ax.get_xticklabels()
    flat = [rows, *([] if columns[0].get_rotation() else [columns])]
    for group in (*flat, ax.texts):
        boxes = [text.get_window_extent() for text in group]
        assert not any(
            a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[at + 1 : at + n + 2]
        )
    inside = ax.figure.bbox
    for text in [*rows, *columns, ax.title, ax.xaxis.label, ax.yaxis.label]:
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 and box.x1 <= inside.x1
        assert inside.y0 <= box.y0 and box.y1 <= inside.y1


def test_matrix_shows_name_shape_and_numbers():
    ax = plots.matrix([[1.0, 0, 1, 0], [0, 1, 0, -1]], name="X", role="query")
    assert (ax.get_title(), ax.title.get_color()) == ("X", light("query"))
    cells = {at: text for at, text in written(ax).items() if at[0] <= 1 and at[1] <= 3}
    assert list(cells.values()) == ["1", "0", "1", "0", "0", "1", "0", "\N{MINUS SIGN}1"]
    (_, below), (right, _) = [text.get_position() for text in ax.texts[-2:]]
    assert [text.get_text() for text in ax.texts[-2:]] == ["4", "2"]
    assert below > 1.5
    assert right > 3.5
    assert not any(labels(ax.yaxis)) and not any(labels(ax.xaxis))
    named = plots.matrix(np.ones((2, 3)), rows=["Chai", "piyo"], columns="abc")
    assert (labels(named.yaxis), labels(named.xaxis)) == (["Chai", "piyo"], list("abc"))
    frame = ax.patches[-1]
    assert frame.get_edgecolor() == to_rgba(light("query"))
    assert frame.get_bbox().bounds == (-0.5, -0.5, 4, 2)


@pytest.mark.parametrize(
    ("values", "decimals", "texts"),
    [
        ([[1.0, 2.5]], None, ["1.00", "2.50"]),
        ([[1.0, 2.0]], None, ["1", "2"]),
        ([[1.0, 2.0]], 1, ["1.0", "2.0"]),
        ([[-0.004, -1.239]], 2, ["0.00", "\N{MINUS SIGN}1.24"]),
        ([[0.0, -np.inf]], None, ["0", "\N{MINUS SIGN}\N{INFINITY}"]),
        ([[np.nan, np.inf]], None, ["NaN", "\N{INFINITY}"]),
        ([[True, False]], None, ["1", "0"]),
        (np.array([[3, 250]], np.uint8), None, ["3", "250"]),
    ],
)
def test_matrix_writes_numbers_as_a_reader_expects(values, decimals, texts):
    ax = plots.matrix(values, decimals=decimals)
    assert [text.get_text() for text in ax.texts[:-2]] == texts


def test_matrix_lights_up_operands():
    ax = plots.matrix(
        np.ones((3, 5)), role="key", highlight=[(0, None), (None, 1), (2, 4), (None, None)]
    )
    lit = ax.patches[:-1]
    assert [patch.get_bbox().bounds for patch in lit] == [
        (-0.5, -0.5, 5, 1),
        (0.5, -0.5, 1, 3),
        (3.5, 1.5, 1, 1),
        (-0.5, -0.5, 5, 3),
    ]
    for patch in lit:
        assert patch.get_edgecolor() == to_rgba(light("key"))
        assert patch.get_facecolor() == to_rgba(light("key"), 0.15)


def shade(patch):
    """Return a path's color, and how many of 16 steps strong it is."""
    *color, alpha = patch.get_facecolor()
    assert tuple(color) == to_rgb(light("muted"))
    return alpha * 16


def covered(ax):
    """Return the share of 16 steps that covers the middle of each cell, by (row, column)."""
    (n_rows, _), (_, n_columns) = ax.get_ylim(), ax.get_xlim()
    cells = np.zeros((round(n_rows + 0.5), round(n_columns + 0.5)))
    filled = [patch for patch in ax.patches if patch.get_facecolor()[3]]
    for row, column in np.ndindex(cells.shape):
        for patch in filled:
            # A point of a cell lies in one box at most.
            boxes = patch.get_path().to_polygons()
            inside = (matplotlib.path.Path(box).contains_point((column, row)) for box in boxes)
            cells[row, column] += shade(patch) * any(inside)
    return cells


def test_heatmap_of_any_numbers_is_stronger_where_they_are_larger():
    values = np.array([[-3.0, -1.0, 1.0], [-1.0, -1.0, 0.0]])
    ax = plots.heatmap(values)
    np.testing.assert_allclose(covered(ax), [[0, 8, 16], [8, 8, 12]])
    assert ax.get_ylim() == (1.5, -0.5)  # the first row is on top
    assert (labels(ax.yaxis), labels(ax.xaxis)) == (["0", "1"], ["0", "1", "2"])


def test_heatmap_keeps_to_the_scale_it_is_given():
    ax = plots.heatmap([[0.0, 1.0, 9.0]], low=-1, high=3, names=("place", "hand"), title="T")
    np.testing.assert_allclose(covered(ax), [[4, 8, 16]])
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("place", "hand", "T")
    np.testing.assert_allclose(covered(plots.heatmap(np.full((2, 3), 7.0))), 8)  # all equal
    run = plots.heatmap(np.repeat([[0.0, 1.0]], 40, axis=0))  # of one shade: one box
    (filled,) = [patch for patch in run.patches if patch.get_facecolor()[3]]
    assert len(filled.get_path().to_polygons()) == 1


def draw_all():
    """One of each figure."""
    _, axes = plt.subplots(1, 2, layout="constrained")
    plots.matrix(np.eye(2), name="$W_Q$", role="value", ax=axes[1], rows=["a", "b"])
    return [
        plots.attention_heatmap(WEIGHTS, QUERIES, KEYS, mask=causal_mask(N_Q, N_K), title="T"),
        plots.matrix(WEIGHTS - 0.5, name="S", role="weight", highlight=[(1, None)]),
        plots.attention_heatmap(WEIGHTS, ax=axes[0]),
        plots.heatmap(WEIGHTS - 0.5, rows=QUERIES, columns=KEYS, names=("from", "to"), title="H"),
    ]


def test_cells_are_square_and_of_one_size_in_every_small_figure():
    sides = []
    for shape in ((2, 2), (3, 5), (7, 11)):
        ax = plots.attention_heatmap(np.full(shape, 1 / shape[1]), ["long label"] * shape[0])
        ax.figure.canvas.draw()
        box = ax.get_window_extent()
        sides += [box.width / shape[1], box.height / shape[0]]
    np.testing.assert_allclose(sides, plots.CELL / 72 * plt.rcParams["figure.dpi"], rtol=1e-6)
    for shape in ((2, 4), (4, 2), (5, 97)):
        ax = plots.matrix(np.ones(shape))
        ax.figure.canvas.draw()
        box = ax.get_window_extent()
        assert box.width / box.height == pytest.approx(shape[1] / shape[0])


@pytest.mark.parametrize("draw", [plots.attention_heatmap, plots.matrix, plots.heatmap])
def test_draws_into_the_axes_that_are_given(draw):
    figure, ax = plt.subplots()
    assert draw(WEIGHTS, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


def test_figures_are_text_in_the_colors_of_the_palette_and_the_same_each_time():
    """In another process, too: nbval compares the figures of chapters with what is stored."""
    known = {light(role) for role in ROLES}
    first, again = ([svg(ax) for ax in draw_all()] for _ in range(2))
    assert first == again
    for ax, drawn in zip(draw_all(), first, strict=True):
        assert set(re.findall(r"#[0-9a-fA-F]{6}\b", drawn)) <= known
        assert not re.search(r"(?:fill|stroke): (?!none|#|url)", drawn)
        assert "<image" not in drawn and "dc:date" not in drawn
        # Black is SVG's default and is not written out, so ask Matplotlib too.
        for text in ax.findobj(matplotlib.text.Text):
            assert to_rgb(text.get_color()) in {to_rgb(color) for color in known}
    for word in (*QUERIES, *KEYS, "query", "key"):
        assert re.search(rf"<text [^>]*>{word}</text>", first[0])
    hostile = svg(plots.attention_heatmap([[0.5, 0.5]], ["<script>"], ["$x_{$", "$5 $6"]))
    assert "&lt;script&gt;" in hostile and "<script>" not in hostile
    assert "$5 $6" in hostile and "$x_{$" in hostile


def test_product_axes_share_the_size_of_their_cells():
    axes = plots.product_axes(np.zeros((2, 7)), np.zeros((7, 3)))
    shapes = [(2, 7), (7, 3), (2, 3)]
    size = axes[0].figure.get_size_inches()
    cells = [
        (ax.get_position().width * size[0] / columns, ax.get_position().height * size[1] / rows)
        for ax, (rows, columns) in zip(axes, shapes, strict=True)
    ]
    np.testing.assert_allclose(cells, cells[0][0])
    assert [text.get_text() for text in axes[0].figure.texts] == ["×", "=", ""]
