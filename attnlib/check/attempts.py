"""Run a learner's function on the inputs of an exercise, and contain whatever it does.

Whatever the function does, `attempt` neither raises, nor warns, nor prints. Where the system has
signals it does not run for ever either.
"""

import contextlib
import io
import math
import re
import signal
import traceback
import warnings
from dataclasses import dataclass

import numpy as np

SECONDS = 10  # that one call of a learner's function may take, where there are signals
NUMBERS = np.generic | bool | int | float | complex


@dataclass(frozen=True)
class Crash:
    """A function raised an error or was stopped: what happened, in words."""

    text: str
    stopped: bool = False

    @property
    def kind(self):
        """The name of the error."""
        return self.text.split(":")[0]


@dataclass(frozen=True)
class Other:
    """A result that is neither numbers nor several results: its type in words."""

    kind: str


@dataclass(frozen=True)
class Attempt:
    """What a function did with its inputs: its result, or a Crash, and what else it did."""

    result: object
    changed: tuple  # the positions of the inputs that it changed in place
    sequence: str  # "list" or "tuple" if one of these was read as an array, else empty
    overflowed: bool
    printed: bool

    @property
    def stopped(self):
        """Whether it ran for too long, or was interrupted."""
        return isinstance(self.result, Crash) and self.result.stopped


class TimeIsUpError(BaseException):
    """Raised in a function that takes too long; its `except Exception` does not catch this."""


class Sink(io.TextIOBase):
    """Discards what is printed, and remembers only that something was."""

    used = False

    def write(self, text):
        """Discard a text."""
        self.used = True
        return len(text)


def attempt(function, inputs, n_results=1):
    """Run a function on copies of its inputs, without raising its errors or showing its warnings.

    The result is kept as plain arrays and tuples: after this no code of the learner runs,
    neither an `__array__` nor an `__eq__`.
    """
    given = [each.copy() if isinstance(each, np.ndarray | list) else each for each in inputs]
    sink, changed, sequence = Sink(), (), ""
    with (
        warnings.catch_warnings(record=True) as caught,
        np.errstate(all="warn"),
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
    ):
        warnings.simplefilter("always")
        try:
            with time_limit(SECONDS):
                returned = function(*given)
                result = as_arrays(returned, n_results)
                sequence = sequence_read(returned, result)
                changed = tuple(
                    i for i, pair in enumerate(zip(given, inputs, strict=True)) if differ(*pair)
                )
        except BaseException as error:  # SystemExit and StopIteration too
            result = crash(error)
    overflowed = any("overflow" in str(item.message) for item in caught)
    return Attempt(result, changed, sequence, overflowed, sink.used)


def differ(given, original):
    """Tell whether an input has been changed."""
    if isinstance(original, np.ndarray):
        return not np.array_equal(given, original, equal_nan=True)
    return isinstance(original, list) and given != original


def crash(error):
    """Return an error as one short line that is the same each time."""
    if isinstance(error, TimeIsUpError):
        return Crash(f"was stopped after {SECONDS} seconds", stopped=True)
    if isinstance(error, KeyboardInterrupt):
        return Crash("was interrupted", stopped=True)
    try:
        text = traceback.format_exception_only(error)[-1].strip().rstrip(".")
    except BaseException:  # an error that fails to name itself
        text = type_name(error)
    # An address differs from run to run, and the stored output of a cell must not.
    text = re.sub(r"0x[0-9a-fA-F]+", "0x...", " ".join(text.split()))
    return Crash(text if len(text) <= 200 else f"{text[:200]}...")


@contextlib.contextmanager
def time_limit(seconds):
    """Stop what runs inside after some seconds, where the system has signals for it.

    A notebook runs its cells in the main thread, which a signal reaches. On Windows, in another
    thread and in a page there is no limit: a page can stop its worker.
    """

    def stop(signum, frame):
        if running:
            raise TimeIsUpError

    running = False
    try:
        handler = signal.signal(signal.SIGALRM, stop)
        # It fires again and again, because a loop may catch whatever is raised in it.
        earlier = signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
    except (AttributeError, ValueError, OSError):  # no such signal here, or not the main thread
        yield
        return
    try:
        running = True
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, *earlier)
        signal.signal(signal.SIGALRM, handler)


# Results


def as_arrays(result, n_results=1):
    """Return a result as plain arrays that the learner's code cannot change any more.

    A list or a tuple of numbers counts as an array where one is expected. Where several results
    are expected, a list of as many counts as a tuple. Of anything else only the type is kept.
    """
    if is_blank(result):
        return result
    if n_results > 1 and isinstance(result, list) and len(result) == n_results:
        result = tuple(result)
    if isinstance(result, np.ndarray | NUMBERS):
        return np.array(result)
    if isinstance(result, list) or (n_results == 1 and holds_numbers(result)):
        with contextlib.suppress(ValueError, TypeError):  # rows of unlike length
            array = np.array(result)
            if array.dtype.kind in "biuf":
                return array
    if isinstance(result, tuple):
        return tuple(map(as_arrays, result))
    return Other(type_name(result))


def holds_numbers(thing):
    """Tell whether this is a list or a tuple of numbers, or of lists or tuples of numbers."""
    if not isinstance(thing, list | tuple) or not len(thing):
        return False
    return all(isinstance(each, NUMBERS) or holds_numbers(each) for each in thing)


def sequence_read(returned, result):
    """Return "list" or "tuple" if one was read as an array, here or as one of several results."""
    if isinstance(result, np.ndarray) and isinstance(returned, list | tuple):
        return "list" if isinstance(returned, list) else "tuple"
    if isinstance(result, tuple):
        return next(filter(None, map(sequence_read, returned, result)), "")
    return ""


def parts(result):
    """Return the results of a function that gives several, or its only one, as a sequence."""
    return result if isinstance(result, tuple) else (result,)


def same(result, other):
    """Tell whether two results agree: in shape, in kind, and in numbers up to rounding."""
    if isinstance(result, Crash) or isinstance(other, Crash):
        return isinstance(result, Crash) and isinstance(other, Crash) and result == other
    if isinstance(result, tuple) and isinstance(other, tuple):
        return len(result) == len(other) and all(map(same, result, other))
    if not (isinstance(result, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if result.shape != other.shape or result.dtype.kind != other.dtype.kind:
        return False
    if result.dtype.kind not in "biuf":
        return False
    # Half of the digits: far above what another order of summation does, far below a mistake.
    spacing = [np.finfo(each.dtype).eps for each in (result, other) if each.dtype.kind == "f"]
    tolerance = math.sqrt(max(spacing, default=0))
    with np.errstate(all="ignore"):
        return bool(np.allclose(result, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def is_blank(thing):
    """Tell whether this is what a starting cell leaves: None, Ellipsis or NotImplemented."""
    return thing is None or thing is Ellipsis or thing is NotImplemented


def type_name(thing):
    """Return the name of a thing's type, whatever its class says of itself."""
    return type.__dict__["__name__"].__get__(type(thing))
