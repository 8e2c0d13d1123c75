"""DotProduct: a query and a key as arrows, and two ways to compute their score."""

import math

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget

LEAST, MOST = -1.3, 3.0  # how far the tips of the two arrows may go, either way


class DotProduct(CourseWidget):
    """The sum of the products beside the shadow of the key times the length of the query.

    The key is a step to the right and a step up. Each step has a shadow on the line of the query,
    and its shadow times the length of the query is one of the two products. So the whole shadow
    times the length is the sum of the products, q . k of "Queries, keys and values".

    Parameters
    ----------
    query, key : two floats
        The tips of the two arrows, each number from -1.3 to 3.

    Raises
    ------
    ValueError
        For a query or a key that is not two numbers in this range.
    """

    query = traitlets.Any([2, 1]).tag(sync=True)
    key = traitlets.Any([0.5, 2]).tag(sync=True)

    @traitlets.validate("query", "key")
    def _check_point(self, proposal):
        value = proposal["value"]
        needed = f"{proposal['trait'].name} needs two numbers from {LEAST} to {MOST}; got {value!r}"
        try:
            point = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(needed) from None
        if point.shape != (2,) or not ((point >= LEAST) & (point <= MOST)).all():
            raise ValueError(needed)
        return [int(x) if x.is_integer() else x for x in point.tolist()]

    @property
    def products(self):
        """The first number of the query times that of the key, and the same for the second."""
        return np.array(self.query, dtype=float) * np.array(self.key, dtype=float)

    @property
    def score(self):
        """The sum of the two products."""
        return float(self.products.sum())

    @property
    def length(self):
        """The length of the query."""
        return math.hypot(*self.query)

    @property
    def shadow(self):
        """How far the key reaches along the query; 0 for a query that points nowhere."""
        return self.score / self.length if self.length else 0.0
