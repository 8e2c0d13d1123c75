"""Figures of the course: arrays in, Matplotlib Axes out.

Every color is exactly one of the palette's, so that the site can replace each by its dark
partner. A weight is therefore the weight color at that opacity, never a color map and never
an embedded picture.
"""

import math
import sys
from numbers import Integral

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from attnlib.attention import may_attend
from attnlib.inputs import read_array, read_floats, read_mask, read_number
from attnlib.palette import cell_ink, light

ROLES = ("query", "key", "value", "weight")

# All in points, 1/72 inch.
CELL = 36  # side of a cell where there is room
FACTOR = 25  # side of a cell of a product where there is room
PRODUCT = 132  # most that its columns may take: all three matrices then fit on a phone
SPAN = 432  # most that all the cells of a row or a column may take
TEXT = 10  # labels, and numbers in cells where there is room
SMALLEST = 8.5  # 10.5 pixels on a phone; what would have to be smaller is left out
SHADES = 16  # steps between the palest and the strongest cell of `heatmap`
GAP = 6  # between cells and what is written beside them


def use_style():
    """Set Matplotlib up for the course: SVG in notebooks, the same bytes in every run."""
    ink, page = light("ink"), light("page")
    plt.rcParams.update(
        {
            "svg.hashsalt": "attention-by-hand",
            "svg.fonttype": "none",
            "figure.facecolor": page,
            "axes.facecolor": page,
            "savefig.facecolor": page,
            "axes.edgecolor": light("line"),
            "axes.labelcolor": ink,
            "text.color": ink,
            "xtick.color": light("line"),
            "ytick.color": light("line"),
            "xtick.labelcolor": ink,
            "ytick.labelcolor": ink,
            "grid.color": light("line"),
            "legend.edgecolor": light("line"),
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": TEXT,
            "axes.titlesize": TEXT + 1,
            "axes.labelsize": TEXT,
            "axes.spines.top": False,
            "axes.spines.right": False,
            # The colors of the roles mean queries, keys, values and weights only, so other
            # lines differ by their strokes.
            "axes.prop_cycle": plt.cycler(
                color=[ink, light("muted")] * 2, linestyle=["-", "--", ":", "-."]
            ),
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
    )
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None})


def attention_heatmap(weights, queries=None, keys=None, *, mask=None, ax=None, title=None):
    """Draw attention weights: rows ask, columns answer.

    Parameters
    ----------
    weights : array of floats from 0 to 1, shape (n_q, n_k)
    queries, keys : sequence of str, optional
        One label per row and per column; positions unless given.
    mask : array, broadcasting to (n_q, n_k), optional
        As in `scaled_dot_product_attention`. Blocked cells are hatched and carry no number.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure of a fitting size unless given.
    title : str, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `weights` does not hold floats, or `mask` neither bools nor floats.
    ValueError
        If `weights` is not a matrix of numbers from 0 to 1, the labels are too few or too
        many, or `mask` does not broadcast.
    """
    weights = _weights(weights)
    n_q, n_k = weights.shape
    queries = _labels(queries, n_q, "queries", "row")
    keys = _labels(keys, n_k, "keys", "column")
    allowed = may_attend(weights.shape, read_mask(mask, weights.shape))
    if ax is None:
        ax = _axes_for_cells(n_q, n_k, queries, keys, named=True, titled=title is not None)
    cell = _cell(ax, n_q, n_k)

    filled = np.argwhere(weights > 0)
    opacities = [(light("weight"), weights[i, j]) for i, j in filled]
    _add_squares(ax, filled, facecolors=opacities, linewidths=0)
    _add_squares(
        ax,
        np.argwhere(~allowed),
        facecolors="none",
        hatch="////" if cell > 2 * TEXT else "//////",
        hatchcolor=light("line"),
        linewidths=0,
    )
    _add_lines(ax, n_q, n_k, cell, light("line"))
    numbers = [(i, j, f"{weights[i, j]:.2f}") for i, j in np.argwhere(allowed)]
    _write_numbers(ax, numbers, cell, [light(cell_ink(weights[i, j])) for i, j, _ in numbers])
    _label_cells(ax, queries, keys, cell)
    ax.set_ylabel("query", color=light("query"), labelpad=GAP)
    ax.set_xlabel("key", color=light("key"), labelpad=GAP)
    if title is not None:
        ax.set_title(title, pad=GAP)
    return ax


def matrix(
    values,
    *,
    name=None,
    role=None,
    rows=None,
    columns=None,
    highlight=(),
    ax=None,
    decimals=None,
):
    """Draw a matrix to proportion, with its name and its shape on its edges.

    Parameters
    ----------
    values : array of real numbers or bools, shape (n_rows, n_columns)
    name : str, optional
        Written above, in the role's color; may hold mathematics, such as "$W_Q$".
    role : {"query", "key", "value", "weight"}, optional
        Whose color frames the matrix; ink unless given.
    rows, columns : sequence of str, optional
        One label per row and per column; none unless given.
    highlight : sequence of (row, column)
        Operands to light up. None means all: (0, None) is the first row, (None, 1) the
        second column.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure of a fitting size unless given.
    decimals : int, optional
        Digits after the point; 2 unless given, or 0 if every number is whole.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `values` does not hold real numbers.
    ValueError
        If `values` is not a matrix, the role is unknown, the labels are too few or too many,
        `highlight` lies outside the matrix, or `decimals` is not a whole number from 0.
    """
    values = read_array(values, "values")
    if values.dtype.kind not in "fiub":
        raise TypeError(f"values must hold real numbers or bools; got {values.dtype}")
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"values must be a matrix (n_rows, n_columns), not empty; got shape {values.shape}"
        )
    if role is not None and role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}; got {role!r}")
    if decimals is not None and (not isinstance(decimals, Integral) or decimals < 0):
        raise ValueError(f"decimals must be a whole number, 0 or more; got {decimals!r}")
    n_rows, n_columns = values.shape
    rows = [""] * n_rows if rows is None else _labels(rows, n_rows, "rows", "row")
    columns = (
        [""] * n_columns if columns is None else _labels(columns, n_columns, "columns", "column")
    )
    color = light(role or "ink")
    if ax is None:
        ax = _axes_for_cells(n_rows, n_columns, rows, columns, named=False, titled=name is not None)
    cell = _cell(ax, n_rows, n_columns)

    for row, column in (_operand(item, values.shape) for item in highlight):
        ax.add_patch(
            Rectangle(
                (-0.5 if column is None else column - 0.5, -0.5 if row is None else row - 0.5),
                n_columns if column is None else 1,
                n_rows if row is None else 1,
                facecolor=(color, 0.15),
                edgecolor=color,
                linewidth=2.2,
                zorder=3,
                clip_on=False,
            )
        )
    _add_lines(ax, n_rows, n_columns, cell, color)
    if decimals is None:
        finite = values[np.isfinite(values)]
        decimals = 0 if np.all(finite == np.round(finite)) else 2
    numbers = [(i, j, _number(values[i, j], decimals)) for i, j in np.ndindex(values.shape)]
    _write_numbers(ax, numbers, cell, [light("ink")] * len(numbers))
    _label_cells(ax, rows, columns, cell)
    _measure_edges(ax, n_rows, n_columns, cell)
    if name is not None:
        ax.set_title(name, color=color, fontsize=TEXT + 3, pad=GAP)
    return ax


def heatmap(
    values, *, low=None, high=None, rows=None, columns=None, names=None, ax=None, title=None
):
    """Draw any matrix of numbers in shades of gray: the larger the number, the stronger the cell.

    Parameters
    ----------
    values : array of floats, all finite, shape (n_rows, n_columns)
    low, high : float, optional
        The numbers of the palest and of the strongest shade; the least and the largest of
        `values` unless given. What lies outside takes the shade at the end; between two equal
        ones all cells take the middle shade.
    rows, columns : sequence of str, optional
        One label per row and per column; positions unless given.
    names : pair of str, optional
        What the rows are and what the columns are, written beside and above.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure of a fitting size unless given.
    title : str, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `values` does not hold floats.
    ValueError
        If `values` is not a matrix of finite numbers, `low` lies above `high`, or the labels
        are too few or too many.
    """
    values = read_floats(values, "values")
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"values must be a matrix (n_rows, n_columns), not empty; got shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; got inf or nan")
    low = float(values.min()) if low is None else read_number(low, "low")
    high = float(values.max()) if high is None else read_number(high, "high")
    if low > high:
        raise ValueError(f"low must not lie above high; got {low} and {high}")
    if names is not None and len(names) != 2:
        raise ValueError(f"names must be two, of the rows and of the columns; got {names!r}")
    n_rows, n_columns = values.shape
    rows = _labels(rows, n_rows, "rows", "row")
    columns = _labels(columns, n_columns, "columns", "column")
    if ax is None:
        ax = _axes_for_cells(
            n_rows, n_columns, rows, columns, named=names is not None, titled=title is not None
        )
    cell = _cell(ax, n_rows, n_columns)

    width = high - low
    share = (np.clip(values, low, high) - low) / width if width else np.full(values.shape, 0.5)
    shades = np.round(share * SHADES).astype(int)
    for shade in range(1, SHADES + 1):
        _add_shade(ax, shades == shade, facecolor=(light("muted"), shade / SHADES))
    _add_lines(ax, n_rows, n_columns, cell, light("line"))
    _label_cells(ax, rows, columns, cell)
    if names is not None:
        ax.set_ylabel(names[0], labelpad=GAP)
        ax.set_xlabel(names[1], labelpad=GAP)
    if title is not None:
        ax.set_title(title, pad=GAP)
    return ax


def product_axes(left, right):
    """Make three Axes for a product, left times right is result, with cells of one size.

    Parameters
    ----------
    left : array, shape (n_rows, n_inner)
    right : array, shape (n_inner, n_columns)

    Returns
    -------
    list of matplotlib.axes.Axes
        For `matrix` to draw in: the left factor, the right factor, their product.

    Raises
    ------
    ValueError
        If the inner sizes do not match.
    """
    for shape, name in ((np.shape(left), "left"), (np.shape(right), "right")):
        if len(shape) != 2:
            raise ValueError(f"{name} must be a matrix; got shape {shape}")
    (n_rows, n_inner), (right_rows, n_columns) = np.shape(left), np.shape(right)
    if n_inner != right_rows:
        raise ValueError(
            f"left and right must share their inner size; got {(n_rows, n_inner)} "
            f"and {(right_rows, n_columns)}"
        )
    shapes = [(n_rows, n_inner), (n_inner, n_columns), (n_rows, n_columns)]
    margin, gap = 5 * TEXT, 2.9 * TEXT  # around the three, and between them
    cell = min(FACTOR, PRODUCT / sum(columns for _, columns in shapes))
    height = max(n_rows, n_inner) * cell + 2 * margin
    width = sum(columns for _, columns in shapes) * cell + 2 * margin + 3 * gap
    figure = plt.figure(figsize=(width / 72, height / 72))
    axes, x = [], margin
    for (rows, columns), sign in zip(shapes, ("\N{MULTIPLICATION SIGN}", "=", ""), strict=True):
        box = (x / width, (height - rows * cell) / 2 / height, columns * cell / width)
        axes.append(figure.add_axes((*box, rows * cell / height)))
        x += columns * cell + gap
        # Nearer to what follows, because the size of what it multiplies comes before it.
        figure.text((x - gap / 3) / width, 0.5, sign, size=1.2 * TEXT, ha="center", va="center")
    return axes


def _weights(weights):
    """Return `weights` as a matrix of floats from 0 to 1 that is not empty."""
    weights = read_floats(weights, "weights")
    if weights.ndim != 2 or weights.size == 0:
        raise ValueError(
            f"weights must be a matrix (n_q, n_k), not empty; got shape {weights.shape}"
        )
    # The mean over heads may pass 1 by a rounding error.
    if not np.all((weights >= 0) & (weights <= 1 + 1e-5)):
        raise ValueError(
            f"weights must lie between 0 and 1; got {weights.min():.4g} to {weights.max():.4g}"
        )
    return np.minimum(weights, 1)


def _labels(labels, needed, name, what):
    """Return `needed` labels as strings; the positions if `labels` is None."""
    labels = [str(label) for label in (range(needed) if labels is None else labels)]
    if len(labels) != needed:
        raise ValueError(f"{name} must hold one label per {what}, {needed}; got {len(labels)}")
    return labels


def _operand(item, shape):
    """Return `item` as (row, column) of a matrix of `shape`, None for a whole row or column."""
    try:
        row, column = item
        inside = all(
            index is None or index in range(size)
            for index, size in zip((row, column), shape, strict=True)
        )
    except (TypeError, ValueError):
        inside = False
    if not inside:
        raise ValueError(
            f"highlight must hold pairs (row, column) inside {shape}, None for all; got {item!r}"
        )
    return row, column


def _number(value, decimals):
    """Return `value` as a reader expects it: a true minus sign, no minus zero, and the sign ∞."""
    text = f"{round(float(value), decimals) + 0.0:.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}").replace("inf", "\N{INFINITY}").replace("nan", "NaN")


def _widest(texts, size):
    """Return the width in points of the widest text."""
    plain = [text.replace("$", r"\$") for text in set(texts) if text.strip()]  # not mathematics
    paths = [TextPath((0, 0), text, size=size) for text in plain]
    return max((path.get_extents().width for path in paths), default=0)


def _fitting_size(texts, width):
    """Return the largest size at which each text fits into `width` points, or None."""
    widest = _widest(texts, TEXT)
    size = min(TEXT, TEXT * 0.75 * width / widest) if widest else TEXT
    return size if size >= SMALLEST else None


def _spacing(pitch):
    """Return size and step of labels `pitch` points apart: every `step`-th of them is written."""
    line = 1.3  # height of a line of text of size 1
    return min(TEXT, max(SMALLEST, pitch / line)), max(1, math.ceil(SMALLEST * line / pitch))


def _lean(labels, pitch):
    """Return by how many degrees column labels must lean to stay clear of each other."""
    size, step = _spacing(pitch)
    if _widest(labels, size) <= 0.9 * pitch * step:
        return 0
    return 45 if pitch * step >= 1.6 * size else 90


def _reach(labels, pitch):
    """Return how far column labels reach, in points: (to the side, away from the cells)."""
    lean = math.radians(_lean(labels, pitch))
    widest = _widest(labels, TEXT)
    return widest * math.cos(lean) * (lean > 0), widest * math.sin(lean) + TEXT


def _axes_of_size(width, height, *, left, right, top, bottom):
    """Return the Axes of a new figure: `width` by `height`, inside margins, all in points."""
    full_width, full_height = left + width + right, bottom + height + top
    figure = plt.figure(figsize=(full_width / 72, full_height / 72))
    return figure.add_axes(
        (left / full_width, bottom / full_height, width / full_width, height / full_height)
    )


def _axes_for_cells(n_rows, n_columns, rows, columns, *, named, titled):
    """Return the Axes of a new figure with room for square cells, their labels and titles."""
    cell = min(CELL, SPAN / max(n_rows, n_columns))
    line = 2 * TEXT
    side, up = _reach(columns, cell)
    return _axes_of_size(
        n_columns * cell,
        n_rows * cell,
        left=_widest(rows, TEXT) + line + line * named,
        right=side + line,
        top=up + line + line * named + line * titled,
        bottom=line,
    )


def _cell(ax, n_rows, n_columns):
    """Make `ax` a grid of square cells around whole coordinates; return their side in points."""
    ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), aspect="equal")
    ax.spines[:].set_visible(False)
    box = ax.get_window_extent()
    cell = min(box.width / n_columns, box.height / n_rows) * 72 / ax.figure.dpi
    # A layout engine will still shrink the Axes to make room for their labels.
    return 0.75 * cell if ax.figure.get_layout_engine() else cell


def _add_squares(ax, cells, **style):
    """Add one square for each (row, column) of `cells`."""
    squares = [Rectangle((column - 0.5, row - 0.5), 1, 1) for row, column in cells]
    ax.add_collection(PatchCollection(squares, zorder=1, clip_on=False, **style), autolim=False)


def _add_shade(ax, where, **style):
    """Fill the cells where `where` is true as one path, each run down a column as one box."""
    edges = np.diff(np.pad(where.T, ((0, 0), (1, 1))).astype(int))  # (n_columns, n_rows + 1)
    columns, tops = np.nonzero(edges == 1)
    bottoms = np.nonzero(edges == -1)[1]
    boxes = [
        Path([(x, top), (x + 1, top), (x + 1, bottom), (x, bottom), (x, top)], closed=True)
        for x, top, bottom in zip(columns - 0.5, tops - 0.5, bottoms - 0.5, strict=True)
    ]
    if boxes:
        # Smoothed edges would leave a pale seam between neighbors.
        one = Path.make_compound_path(*boxes)
        ax.add_patch(PathPatch(one, linewidth=0, antialiased=False, clip_on=False, **style))


def _add_lines(ax, n_rows, n_columns, cell, color):
    """Rule thin lines between cells that are large enough, and frame them all in `color`."""
    if cell >= TEXT:
        style = {"colors": light("line"), "linewidths": 0.5, "zorder": 2}
        ax.hlines(np.arange(n_rows - 1) + 0.5, -0.5, n_columns - 0.5, **style)
        ax.vlines(np.arange(n_columns - 1) + 0.5, -0.5, n_rows - 0.5, **style)
    frame = {"facecolor": "none", "edgecolor": color, "linewidth": 1, "zorder": 2.5}
    ax.add_patch(Rectangle((-0.5, -0.5), n_columns, n_rows, clip_on=False, **frame))


def _write_numbers(ax, numbers, cell, colors):
    """Write each (row, column, text) into its cell, all in one size, if all of them fit.

    Where 0.38 does not fit, .38 is written, if it is as large as a label.
    """
    size = _fitting_size([text for _, _, text in numbers], cell)
    if size is None:
        numbers = [
            (*place, {"1.00": "1"}.get(text, text.removeprefix("0"))) for *place, text in numbers
        ]
        size = _fitting_size([text for _, _, text in numbers], cell)
        if size is None or size < 0.9 * TEXT:
            return
    centered = {"ha": "center", "va": "center_baseline", "fontsize": size, "zorder": 4}
    for (row, column, text), color in zip(numbers, colors, strict=True):
        ax.text(column, row, text, color=color, **centered)


def _label_cells(ax, rows, columns, cell):
    """Write row labels to the left and column labels on top."""
    ax.tick_params(left=False, bottom=False, length=0, pad=GAP, labeltop=True, labelbottom=False)
    ax.xaxis.set_label_position("top")
    _set_labels(ax.yaxis, rows, cell)
    _set_labels(ax.xaxis, columns, cell, lean=_lean(columns, cell))


def _set_labels(axis, labels, pitch, *, lean=0):
    """Write labels `pitch` points apart, leaving some out where they would touch."""
    size, step = _spacing(pitch)
    shown = range(0, len(labels), step)
    style = {"parse_math": False, "fontsize": size}
    if lean:
        style |= {"rotation": lean, "rotation_mode": "anchor", "ha": "left"}
        style["va"] = "bottom" if lean < 90 else "center"
    axis.set_ticks(shown, labels[::step], **style)


def _measure_edges(ax, n_rows, n_columns, cell):
    """Write the number of columns below the matrix and the number of rows to its right."""
    away = 1.5 * GAP / cell
    style = {"color": light("line"), "linestyle": "-", "linewidth": 0.8}
    style |= {"markersize": 5, "clip_on": False}
    right, bottom = n_columns - 0.5, n_rows - 0.5
    ax.plot([-0.5, right], [bottom + away] * 2, marker="|", **style)
    ax.plot([right + away] * 2, [-0.5, bottom], marker="_", **style)
    text = {"ha": "center", "va": "center", "fontsize": TEXT - 1, "color": light("muted")}
    behind = {"facecolor": light("page"), "edgecolor": "none", "pad": 1.5}
    ax.text((n_columns - 1) / 2, bottom + away, str(n_columns), bbox=behind, **text)
    ax.text(right + away, (n_rows - 1) / 2, str(n_rows), bbox=behind, **text)
