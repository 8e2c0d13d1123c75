"""ChainRule: a calculation in boxes, numbers going forward, and slopes coming back."""

import math

import traitlets

from attnlib.widgets.kit.base import CourseWidget, Number, Whole

INPUT = 2  # the one number of the word in "model"
DEPTHS = {"stall": 3, "model": 4}  # rows of boxes


class ChainRule(CourseWidget):
    """A small calculation in boxes, and the slope of its result at each of them.

    Slopes along a path are multiplied, and the results of several paths are added.

    - "stall": a cup of chai is sold at the price x. A cup brings y = x - 4, and u = 100 - 5 x cups
      are sold, so the result is y u: the price has two paths to it.
    - "model": a parameter w makes the logit z = 2 w of the right one of two words; the other has
      the logit 0. The probability is p = e^z / (e^z + 1), and the result is the loss -ln p.

    Parameters
    ----------
    scene : {"stall", "model"}
        Which calculation.
    price : float
        In "stall", the price of a cup, 5 to 19.
    parameter : float
        In "model", the parameter w, -3 to 3.
    back : int
        How many rows of boxes have their slope, counted from the result, 0 to 4.

    Raises
    ------
    ValueError
        For a number outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a scene that does not exist.
    """

    scene = traitlets.Enum(list(DEPTHS), "stall").tag(sync=True)
    price = Number(5, 19, 10).tag(sync=True)
    parameter = Number(-3, 3, 0.5).tag(sync=True)
    back = Whole(0, 4, 0).tag(sync=True)

    def __init__(self, scene="stall", **traits):
        super().__init__(scene=scene, **traits)

    @property
    def values(self):
        """The number in each box, by its letter, in the order of the calculation."""
        if self.scene == "stall":
            profit, cups = self.price - 4, 100 - 5 * self.price
            return {"x": self.price, "y": profit, "u": cups, "L": profit * cups}
        logit = INPUT * self.parameter
        probability = 1 / (1 + math.exp(-logit))
        loss = math.log1p(math.exp(-logit))
        return {"w": self.parameter, "z": logit, "p": probability, "L": loss}

    @property
    def slopes(self):
        """How much the result changes for each unit by which a box changes, by its letter."""
        found = self.values
        if self.scene == "stall":
            return {"x": found["u"] - 5 * found["y"], "y": found["u"], "u": found["y"], "L": 1.0}
        error = found["p"] - 1
        return {"w": INPUT * error, "z": error, "p": -1 / found["p"], "L": 1.0}
