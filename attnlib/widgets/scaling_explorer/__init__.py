"""ScalingExplorer: why scores grow with d_k, what the softmax makes of them, and three divisors."""

import traitlets

from attnlib.widgets.kit.base import CourseWidget, Number, Whole

SCENES = ("walks", "coins", "gap", "sizes")
MAX_D_K = 256
N_TOSSES = 12  # sets of coins for "walks"


class ScalingExplorer(CourseWidget):
    """What becomes of the scores and of the weights as queries and keys get longer.

    Each scene shows one idea and has one control.

    - "walks": the scores of one query with six keys, added up product by product, and their
      weights. All numbers are coins, 1 or -1. Slide d_k, and divide by its square root.
    - "coins": a query and a key of four coins each, their products, and the score. Turn a coin.
    - "gap": the weight of the larger of two scores and its slope. Slide the difference.
    - "sizes": the weights of 16 random keys, not divided, divided by the square root of d_k, and
      divided by d_k. Slide d_k.

    Parameters
    ----------
    scene : {"walks", "coins", "gap", "sizes"}
        What is drawn.
    d_k : int
        How many numbers a query and a key have, 1 to 256.
    divided : bool
        In "walks": whether the scores are divided by the square root of d_k.
    toss : int
        In "walks": which of 12 tosses of all the coins, 1 to 12.
    coins : int
        In "coins": the eight coins as bits, 1 for heads. The lowest four are the query.
    gap : float
        In "gap": the score of the first key minus that of the second, -10 to 10.

    Raises
    ------
    ValueError
        For a number outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a scene that does not exist.
    """

    scene = traitlets.Enum(SCENES, "walks").tag(sync=True)
    d_k = Whole(1, MAX_D_K, 4).tag(sync=True)
    divided = traitlets.Bool(False).tag(sync=True)
    toss = Whole(1, N_TOSSES, 3).tag(sync=True)
    coins = Whole(0, 255, 0b01011101).tag(sync=True)
    gap = Number(-10, 10, 2.0).tag(sync=True)

    def __init__(self, scene="walks", **traits):
        super().__init__(scene=scene, **traits)
