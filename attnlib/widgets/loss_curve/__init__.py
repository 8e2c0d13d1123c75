"""LossCurve: the loss for a probability, and how steep the curve is there."""

import math

import traitlets

from attnlib.widgets.kit.base import CourseWidget, Number


class LossCurve(CourseWidget):
    """The loss -ln p of the right word against its probability p.

    Both scenes have the same point, which slides along the curve.

    - "loss": the loss in nats and in bits, and among how many equally likely words a choice has
      this loss, Eq. (1) of "How it learns what to ask".
    - "slope": the straight line that touches the curve at the point, and its slope -1 / p.

    Parameters
    ----------
    scene : {"loss", "slope"}
        What is drawn beside the curve.
    probability : float
        The probability of the right word, 0.01 to 1.

    Raises
    ------
    ValueError
        For a probability outside this range.
    traitlets.TraitError
        For a value of the wrong type, or a scene that does not exist.
    """

    scene = traitlets.Enum(["loss", "slope"], "loss").tag(sync=True)
    probability = Number(0.01, 1, 0.25).tag(sync=True)

    def __init__(self, scene="loss", **traits):
        super().__init__(scene=scene, **traits)

    @property
    def loss(self):
        """Minus the natural logarithm of the probability, in nats."""
        return -math.log(self.probability)

    @property
    def bits(self):
        """The same with the logarithm to the base 2."""
        return -math.log2(self.probability)

    @property
    def perplexity(self):
        """How many equally likely words have this loss: e to its power."""
        return math.exp(self.loss)

    @property
    def slope(self):
        """How much the loss changes for each unit by which the probability changes."""
        return -1 / self.probability
