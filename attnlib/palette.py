"""The colors of the course, defined once: figures, widgets and pages all read them here.

Each role is a pair, (on a light page, on a dark page). Text colors reach a contrast of
at least 4.5 : 1 on the page's background, and the four roles of attention can be
distinguished under the common color-vision deficiencies. Color is never the only sign: a letter or
a label is always there too.
"""

ROLES = {
    "query": ("#0067a3", "#6cb6f0"),
    "key": ("#b84a00", "#f2a25c"),
    "value": ("#007a59", "#5fcba3"),
    "weight": ("#8a3fa0", "#cf9be0"),
    "ink": ("#000000", "#e6e6ea"),
    "muted": ("#5b5b66", "#a3a3ad"),
    "line": ("#8c8c96", "#7a7a84"),
    "page": ("#ffffff", "#131416"),
    # A number on a cell of weight w: no single ink is readable from 0 to 1 in both themes.
    # The light members differ by one step so that each can be found again in a finished SVG.
    "cell_low": ("#000001", "#ffffff"),
    "cell_mid": ("#000002", "#000000"),
    "cell_high": ("#fffffe", "#000000"),
}

# What a case of the parity atlas comes to, as the ground of its cell, on which "ink" is readable;
# on "nan" it is "page". A sign in the cell says the same.
OUTCOMES = {
    "equal": ("#eceff1", "#25292c"),
    "zero": ("#b7e0d4", "#1c5547"),
    "shares": ("#f6df84", "#665400"),
    "nan": ("#b3261e", "#ff8a80"),
    "other": ("#f9b266", "#8a4a00"),
    "random": ("#d3d3db", "#47474f"),
}

# Below LOW the dark theme needs white ink; from HIGH on the light theme needs white ink.
LOW, HIGH = 0.635, 0.845


def light(role):
    """The color of `role` on a light page, as Matplotlib takes it."""
    return ROLES[role][0]


def cell_ink(weight):
    """The role of the ink that is readable on a cell filled to `weight`, between 0 and 1."""
    if weight < LOW:
        return "cell_low"
    return "cell_mid" if weight < HIGH else "cell_high"


def css():
    """The roles as CSS custom properties, `--query` and so on, for every host of a widget.

    A page is dark if it sets a dark theme (the site's switch, JupyterLab, VS Code, Colab), or if it
    sets no theme and the reader's system is dark. On paper it is always light.
    """
    colors = ROLES | {f"outcome-{name}": pair for name, pair in OUTCOMES.items()}
    light_, dark_ = (
        " ".join(f"--{role.replace('_', '-')}: {pair[i]};" for role, pair in colors.items())
        for i in (0, 1)
    )
    dark_page = (
        'body[data-theme="dark"], body[data-jp-theme-light="false"], body.vscode-dark, '
        'html[theme="dark"] body'
    )
    no_theme = 'body:not([data-theme="light"], [data-jp-theme-light], [class*="vscode-"])'
    return (
        f"body {{ {light_} }}\n@media screen {{ {dark_page} {{ {dark_} }} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ {no_theme} {{ {dark_} }} }}\n"
    )
