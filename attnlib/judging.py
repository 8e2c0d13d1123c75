"""A rule for an attention head, scored on many texts beside two simple rivals and chance."""

import functools
import operator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlib.inputs import read_size

RECORDED = Path(__file__).with_name("data") / "heads.npz"
FEWEST = 10  # texts: with fewer, the spread between texts says little
SHOWN = 5  # positions at which a rule fails
AROUND = 4  # tokens that are shown on each side of such a position


@dataclass(frozen=True)
class Recorded:
    """Where the heads of a model put their largest weight, in texts that it has read.

    Parameters
    ----------
    texts : list of tuple of str
        The tokens of each text.
    queries : list of array of int
        The positions of each text that count.
    keys : list of array of int, shape (n_layers, n_heads, number of queries)
        For each head and query the position with the largest weight.
    largest : array, shape (n_layers, n_heads)
        The mean of those weights.
    causal : bool
        Whether a token can attend to those up to itself only.
    """

    texts: list
    queries: list
    keys: list
    largest: np.ndarray
    causal: bool

    def seen(self, text, i):
        """Return the tokens of a text to which the token at position i may attend."""
        return self.texts[text][: i + 1] if self.causal else self.texts[text]


@dataclass(frozen=True)
class Position:
    """A position in a text at which a rule was judged."""

    text: int  # which one
    query: int
    n: int  # positions from which the head can choose
    named: int  # by the rule
    key: int  # with the head's largest weight


@dataclass(frozen=True, repr=False)
class Judgment:
    """How often a rule names the position of a head's largest weight.

    The texts come in two halves. Failures are shown from the first half, so a rule can be
    improved with them; the second half is held out and shows what the rule is worth.

    Attributes
    ----------
    n_positions, n_right : int
        Positions at which the rule names one, and those at which it is right.
    rule, fixed, by_token, chance : tuple of float
        The share of positions that are right, in the first half and in the half held out: of the
        rule, of the best rule that ignores the words, of the token table, which has the best such
        rule for each current token, and of a random choice.
    names_of_fixed : tuple of str
        What that fixed rule says in each half; it was chosen in the other one.
    lead, error : float
        By how much the rule is ahead of the fixed one in the half held out, and the standard
        error of this number over the texts.
    lead_by_token, error_by_token : float
        The same beside the token table.
    n_texts : int
        Texts of the half held out in which the rule named a position.
    """

    title: str
    largest: float
    n_positions: int
    n_right: int
    rule: tuple
    fixed: tuple
    by_token: tuple
    chance: tuple
    names_of_fixed: tuple
    lead: float
    error: float
    lead_by_token: float
    error_by_token: float
    n_texts: int
    failures: tuple

    @property
    def beats_fixed(self):
        """Whether the lead is more than two standard errors, over enough texts."""
        return self.n_texts >= FEWEST and self.lead > 2 * self.error

    @property
    def beats_by_token(self):
        """Whether the same holds beside the token table."""
        return self.n_texts >= FEWEST and self.lead_by_token > 2 * self.error_by_token

    def __repr__(self):
        """Return the scores, what they say, and a few positions at which the rule fails."""
        if not self.n_positions:
            return f"{self.title}\nThe rule returned None everywhere, so there is nothing to judge."
        names = " or ".join(dict.fromkeys(self.names_of_fixed))
        rows = [("your rule", self.rule), ("fixed rule", self.fixed)]
        rows += [("token table", self.by_token), ("chance", self.chance)]
        lines = [
            self.title,
            f"Positions judged: {self.n_positions:,}.",
            f"The head's largest weight is {self.largest:.2f} on average over all positions.",
            f"Fixed rule: {names}.",
            "",
            "share right  shown  held out",
            *(f"{name:11}  {a:5.2f}  {b:8.2f}".replace("nan", "  –") for name, (a, b) in rows),
            "",
            *self._verdicts(),
        ]
        if self.failures:
            lines += ["", "Where it fails, in the texts that are shown:", *self.failures]
        return "\n".join(lines)

    def _verdicts(self):
        if self.n_texts < FEWEST:
            said = f"Only {self.n_texts} texts held out have such a position: too few to say more."
            return [said]
        return [
            _verdict("the fixed rule", self.lead, self.error),
            _verdict("the token table", self.lead_by_token, self.error_by_token),
        ]


def _verdict(rival, lead, error):
    """Return whether a rule is ahead of a rival, in words."""
    margin = f"{abs(lead):.2f} ± {error:.2f}"
    if lead > 2 * error:
        return f"Your rule is ahead of {rival} by {margin}."
    if lead < -2 * error:
        return f"Your rule is behind {rival} by {margin}."
    if lead == error == 0:
        return f"Your rule is right exactly as often as {rival}."
    return f"No clear difference between your rule and {rival}: {lead:+.2f} ± {error:.2f}."


def judge(rule, model, layer, head):
    """Compare a rule with the position to which a head gives its largest weight.

    Parameters
    ----------
    rule : callable
        Called as `rule(tokens, i)` with the tokens that the token at position i may attend to, it
        returns the position at which the head should look, or None where it makes no claim. In the
        encoder these are all tokens of the sentence, in the writer those up to position i.
        Positions are counted from 0.
    model : str
        "encoder": all-MiniLM-L6-v2 on a hundred everyday sentences, every position but the first.
        "writer": the course's own model on a thousand stories, 24 positions in each.
    layer, head : int
        Counted from 0.

    Returns
    -------
    Judgment
        Printed, it shows the scores beside those of two rivals and of chance. The fixed rule
        ignores the words. It always names the first token, the last, or one at the same
        distance; the best of these is chosen in the other half of the texts, at the same positions.
        The token table makes this choice for each current token by itself, and falls back on the
        fixed rule where the other half does not have the token.

    Raises
    ------
    TypeError
        If `rule` cannot be called, or returns anything other than a whole number or None.
    ValueError
        If there is no such model, layer or head, or `rule` returns a position at which the head
        cannot look.

    Examples
    --------
    >>> judge(lambda tokens, i: i - 1, "encoder", layer=0, head=2).rule
    (1.0, 1.0)
    """
    if not callable(rule):
        raise TypeError(f"rule must be a function of (tokens, i); got {type(rule).__name__}")
    recorded, title, layer, head = _find(model, layer, head)
    positions = [*_positions(rule, recorded, layer, head)]
    halves = [[each for each in positions if each.text % 2 == half] for half in (0, 1)]
    fixed = [_best_fixed(halves[1 - half]) for half in (0, 1)]
    rights = [_rights(halves[half], halves[1 - half], fixed[half], recorded) for half in (0, 1)]
    shares = [right.mean(axis=0) if len(right) else np.full(4, np.nan) for right in rights]
    rule_is_right, *rivals = rights[1].T[:3]
    leads = [_lead(halves[1], rule_is_right - rival) for rival in rivals]
    return Judgment(
        title,
        float(recorded.largest[layer, head]),
        len(positions),
        sum(each.named == each.key for each in positions),
        *(tuple(float(half[k]) for half in shares) for k in range(4)),
        tuple(_name(each) for each in fixed),
        *(number for lead in leads for number in lead),
        len({each.text for each in halves[1]}),
        tuple(_failures(halves[0], recorded)),
    )


@functools.cache
def _recorded(model):
    """Read what was recorded of a model; `tools/record_heads.py` has written it."""
    with np.load(RECORDED, allow_pickle=False) as stored:
        part = {
            name.partition(".")[2]: stored[name]
            for name in stored.files
            if name.startswith(f"{model}.")
        }
    words = part["words"].tobytes().decode().split("\n")
    ends = np.cumsum(part["lengths"])
    texts = [tuple(words[t] for t in each) for each in np.split(part["tokens"], ends[:-1])]
    counts = np.cumsum(part["counts"])
    queries = np.split(part["queries"], counts[:-1])
    keys = np.split(part["keys"], counts[:-1], axis=-1)
    for array in (*queries, *keys, part["largest"]):
        array.flags.writeable = False  # a rule may do what it likes, and the next one is judged too
    return Recorded(texts, queries, keys, part["largest"], causal=model == "writer")


def _find(model, layer, head):
    """Return the recording, a title, and the layer and head as int; refuse what is not there."""
    if model not in ("encoder", "writer"):
        raise ValueError(f'model must be "encoder" or "writer"; got {model!r}')
    recorded = _recorded(model)
    found = []
    for name, value, n in zip(
        ("layer", "head"), (layer, head), recorded.largest.shape, strict=True
    ):
        found.append(read_size(value, name))
        if found[-1] >= n:
            raise ValueError(f"{name} must be 0 to {n - 1} in the {model}; got {value}")
    number, of_head, n_texts = found[0] + 1, found[1] + 1, len(recorded.texts)
    return recorded, f"Layer {number}, head {of_head} of the {model}, {n_texts:,} texts", *found


def _positions(rule, recorded, layer, head):
    """Yield a `Position` wherever the rule names one."""
    for text, (queries, keys) in enumerate(zip(recorded.queries, recorded.keys, strict=True)):
        for i, key in zip(queries.tolist(), keys[layer, head].tolist(), strict=True):
            tokens = recorded.seen(text, i)
            named = _read_position(rule(tokens, i), tokens, i)
            if named is not None:
                yield Position(text, i, len(tokens), named, key)


def _read_position(named, tokens, i):
    """Return what a rule returned as int, or None; refuse what is not a position."""
    if named is None or named is Ellipsis:
        return None
    where = f"for position {i}, {tokens[i]!r},"
    try:
        position = operator.index(named)
    except TypeError:
        position = None
    if position is None or isinstance(named, bool | np.bool_):
        raise TypeError(
            f"rule must return a position, which is a whole number, or None; {where} it returned "
            f"{named!r:.60}"
        )
    if not 0 <= position < len(tokens):
        raise ValueError(
            f"rule must return a position from 0 to {len(tokens) - 1} {where} or None; "
            f"it returned {position}"
        )
    return position


def _best_fixed(positions):
    """Return the fixed rule that is right most often; the first position if there are none."""
    counts = {("first", 0): 0, ("last", 0): 0}
    for each in positions:
        step = "step", each.key - each.query
        counts[step] = counts.get(step, 0) + 1
        counts["first", 0] += each.key == 0
        counts["last", 0] += each.key == each.n - 1
    return max(counts, key=counts.get)


def _rights(positions, others, fixed, recorded):
    """Return for each position whether the rule and its two rivals are right, and the chance.

    Of the rivals, `fixed` was chosen from the `others`, and so is the token table.
    """

    def token(each):
        return recorded.texts[each.text][each.query]

    of_tokens = {}
    for each in others:
        of_tokens.setdefault(token(each), []).append(each)
    by_token = {word: _best_fixed(group) for word, group in of_tokens.items()}
    rows = []
    for each in positions:
        named = [each.named]
        for kind, step in (fixed, by_token.get(token(each), fixed)):
            named.append({"first": 0, "last": each.n - 1, "step": each.query + step}[kind])
        rows.append([*(place == each.key for place in named), 1 / each.n])
    return np.array(rows, dtype=float).reshape(-1, 4)


def _lead(positions, leads):
    """Return the mean lead of a rule over a rival, and its standard error."""
    if not positions:
        return float("nan"), float("nan")
    _, which = np.unique([each.text for each in positions], return_inverse=True)
    lead = leads.mean()
    # The texts are drawn, the positions within one depend on each other.
    sums = np.bincount(which, leads - lead)
    return float(lead), float(np.sqrt((sums**2).sum()) / len(positions))


def _name(fixed):
    """Return a fixed rule in words."""
    kind, step = fixed
    if kind != "step":
        return f"the {kind} token"
    if not step:
        return "the token itself"
    many = "the token" if abs(step) == 1 else f"{abs(step)} tokens"
    return f"{many} {'before' if step < 0 else 'after'}"


def _failures(positions, recorded):
    """Yield two lines for each of the first positions at which the rule fails, one per text."""
    found = {}
    for each in positions:
        if each.named != each.key:
            found.setdefault(each.text, each)
    for each in [*found.values()][:SHOWN]:
        tokens = recorded.texts[each.text]
        yield f"- {_excerpt(tokens, each)}"
        yield (
            f"  rule: {tokens[each.named]} (position {each.named}); "
            f"head: {tokens[each.key]} (position {each.key})"
        )


def _excerpt(tokens, position):
    """Return the tokens around a position at which a rule fails, its query in brackets."""
    shown = [-1, len(tokens)]
    for at in (position.query, position.named, position.key):
        shown += range(max(at - AROUND, 0), min(at + AROUND + 1, len(tokens)))
    words, last = [], -1
    for at in sorted({*shown}):
        words += ["..."] if at > last + 1 else []
        if 0 <= at < len(tokens):
            words.append(f"[{tokens[at]}]" if at == position.query else tokens[at])
        last = at
    return " ".join(words)
