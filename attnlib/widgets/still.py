"""Pieces of a widget's still picture: elements, options, a heatmap and the same as a table."""

from html import escape

from attnlib.palette import cell_ink

# The sheet that a heatmap is drawn on, with the bars of one row under it; attention_explorer.js
# draws on the same one.
WIDTH, HEIGHT = 360, 470
LEFT, TOP, SIZE = 74, 64, 280
BARS, TALLEST = 442, 70

_LONGEST_NAME = 12


def element(tag, content="", /, **attributes):
    """An element as text, its attributes escaped; `content` is markup already.

    Underscores in the names of attributes become dashes, `class_` is class. Numbers get two
    decimals at most; True leaves the name alone and False leaves it out.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_value(value)}"')
        for key, value in attributes.items()
        if value is not False
    )
    return f"<{tag}{written}>" if tag == "input" else f"<{tag}{written}>{content}</{tag}>"


def _value(value):
    return f"{round(value, 2):g}" if isinstance(value, float) else escape(str(value))


def reserved(part, lines, still="", summary="Answer"):
    """A status named `part` with room for the longest of `lines`, which are names and markup.

    The lines wait out of sight until the front end shows one. `still` is folded up there for
    those without JavaScript.
    """
    ghosts = "".join(
        element("p", line, class_="ghost", aria_hidden="true", data_line=name)
        for name, line in lines.items()
    )
    fold = element("details", element("summary", summary) + element("p", still)) if still else ""
    status = element("p", role="status", data_part=part)
    return element("div", ghosts + status + fold, class_="reserved")


def options(choices, chosen):
    """The options of a select, from pairs of value and label."""
    return "".join(
        element("option", escape(label), value=value, selected=value == chosen)
        for value, label in choices
    )


def called(tokens):
    """What a sentence calls each token: cut if long, numbered if there are several of it."""
    return [
        (t if len(t) <= _LONGEST_NAME else t[: _LONGEST_NAME - 1] + "…")
        + (f" ({i + 1})" if tokens.count(t) > 1 else "")
        for i, t in enumerate(tokens)
    ]


def weight_table(tokens, weights, allowed):
    """The weights as the rows of a table, for those who do not see the picture."""
    head = "".join(element("th", escape(token), scope="col") for token in tokens)
    rows = [element("tr", f"<td></td>{head}")]
    for token, row, may in zip(tokens, weights, allowed, strict=True):
        cells = (
            f"{weight:.2f}" if free else "masked" for weight, free in zip(row, may, strict=True)
        )
        first = element("th", escape(token), scope="row")
        rows.append(element("tr", first + "".join(element("td", cell) for cell in cells)))
    caption = element("caption", "Attention weights: queries in rows, keys in columns")
    return caption + "".join(rows)


def heatmap(tokens, weights, allowed, row):
    """Attention weights as an SVG: rows ask, columns answer, and `row` once more as bars."""
    side = SIZE / len(tokens)
    marks = []
    for i, token in enumerate(tokens):
        y = TOP + i * side
        if side >= 10:
            marks += _labels(token, i * side + side / 2, bold=i == row)
        for j in range(len(tokens)):
            x = LEFT + j * side
            if not allowed[i, j]:
                marks.append(_hatch(x, y, side))
                continue
            weight = float(weights[i, j])
            box = {"x": x, "y": y, "width": side, "height": side}
            marks.append(element("rect", **box, fill="var(--weight)", fill_opacity=weight))
            if side >= 27:
                ink = cell_ink(weight).replace("_", "-")
                marks.append(_number(weight, x + side / 2, y + side / 2 + 4, ink))
    for j, weight in enumerate(map(float, weights[row])):
        x, y = LEFT + (j + 0.15) * side, BARS - TALLEST * weight
        box = {"x": x, "y": y, "width": 0.7 * side, "height": TALLEST * weight}
        marks.append(element("rect", **box, fill="var(--weight)"))
        if side >= 27 and allowed[row, j]:
            marks.append(_number(weight, x + 0.35 * side, y - 5, "weight"))
    marks.append(_name(tokens[row], BARS, bold=True))
    frame = {"x": LEFT, "y": TOP + row * side, "width": SIZE, "height": side, "fill": "none"}
    marks.append(element("rect", **frame, stroke="var(--query)", stroke_width=2))
    marks.append(element("path", d=f"M{LEFT} {BARS}h{SIZE}", stroke="var(--line)"))
    return element(
        "svg",
        "".join(marks),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label="Heatmap of the attention weights; the table below holds the numbers",
    )


def _number(weight, x, y, role):
    return element("text", f"{weight:.2f}", x=x, y=y, text_anchor="middle", fill=f"var(--{role})")


def _labels(token, middle, *, bold):
    """A token as the name of its row and of its column."""
    place = f"translate({LEFT + middle + 3:g} {TOP - 7}) rotate(-50)"
    column = element("text", _fitted(token), transform=place, fill="var(--key)")
    return [_name(token, TOP + middle + 4, bold=bold), column]


def _name(token, y, *, bold):
    style = {"text_anchor": "end", "fill": "var(--query)"}
    weight = "bold" if bold else "normal"
    return element("text", _fitted(token), x=LEFT - 8, y=y, font_weight=weight, **style)


def _fitted(token):
    return escape(token if len(token) < 10 else token[:8] + "…")


def _hatch(x, y, side):
    """Five diagonals across a cell: forbidden looks different from zero."""
    lines = "".join(
        f"M{x:.2f} {y + part * side:.2f}L{x + part * side:.2f} {y:.2f}"
        f"M{x + part * side:.2f} {y + side:.2f}L{x + side:.2f} {y + part * side:.2f}"
        for part in (1 / 3, 2 / 3, 1)
    )
    return element("path", d=lines, stroke="var(--line)", stroke_width=0.7)


def moving(tag, part, marks, content="", /, **attributes):
    """An element whose `marks` the page will change."""
    return element(tag, content, data_part=part, **attributes, **marks[part])


def text(content, x, y, role="muted", /, *, anchor="start", **attributes):
    """A line of text in a drawing, in the colour of `role`."""
    return element(
        "text",
        content,
        x=float(x),
        y=float(y),
        text_anchor=anchor,
        fill=f"var(--{role})",
        **attributes,
    )


def line(d, **attributes):
    """An axis or a frame of a drawing."""
    return element("path", d=d, fill="none", stroke="var(--line)", **attributes)


def sheet(parts, width, height, label):
    """A drawing that the page goes on with; `label` is for those who do not see it."""
    return element(
        "svg",
        "".join(parts),
        viewBox=f"0 0 {width} {height}",
        role="img",
        data_part="sheet",
        aria_label=label,
    )
