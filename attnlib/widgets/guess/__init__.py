"""Guess: one tap before the picture is played; every choice has its reply."""

import re
from collections.abc import Mapping

import traitlets

from attnlib.widgets.kit.base import CourseWidget, check_key

PLAYS = re.compile(r"[a-z-]+(-\d+)?\.\w+=[^&]*(&[a-z-]+(-\d+)?\.\w+=[^&]*)*")


class Guess(CourseWidget):
    """A question answered with one tap; in the book the answer also sets a picture of the page.

    Parameters
    ----------
    question : str
    choices : dict of str to str
        Two to five choices, each with the reply that it gets.
    right : str
        The right one of them.
    key : str
        The name under which the reader's progress is kept: small letters, digits and dashes.
    plays : str
        What any choice sets in the page, as its address says it: "plane.sentence=money", or
        several settings joined by "&". The second Plane of a page is plane-2.

    Raises
    ------
    ValueError
        For fewer than two or more than five choices, one without a reply, a right choice that is
        none of them, or a key or settings of the wrong form.
    """

    question = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List().tag(sync=True)  # pairs: an object would sort numbers in front
    right = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    plays = traitlets.Unicode().tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)  # the last one tapped

    def __init__(self, question, choices, *, right, key, plays="", **traits):
        pairs = choices.items() if isinstance(choices, Mapping) else choices
        pairs = [[str(choice), str(reply)] for choice, reply in pairs]
        names = [choice for choice, _ in pairs]
        if not 2 <= len(set(names)) == len(names) <= 5:
            raise ValueError(f"a guess needs two to five choices, each its own; got {names}")
        silent = [choice for choice, reply in pairs if not (choice.strip() and reply.strip())]
        if silent:
            raise ValueError(f"each choice needs words and a reply; got {silent[0]!r} without")
        if right not in names:
            raise ValueError(f"right needs one of {names}; got {right!r}")
        if plays and not PLAYS.fullmatch(plays):
            raise ValueError(f"plays needs settings such as plane.sentence=money; got {plays!r}")
        super().__init__(
            question=question,
            choices=pairs,
            right=right,
            key=check_key(key),
            plays=plays,
            **traits,
        )

    @traitlets.validate("chosen")
    def _check_chosen(self, proposal):
        names = ["", *(choice for choice, _ in self.choices)]
        if proposal["value"] not in names:
            raise ValueError(f"chosen needs one of {names}; got {proposal['value']!r}")
        return proposal["value"]
