"""Server: one pass for many users, and a server that is simulated pass by pass."""

import traitlets

from attnlib import serving
from attnlib.widgets.kit.base import CourseWidget, Whole

SCENES = ("pass", "run")
AT_ONCE = (1, 2, 4, 8, 16, 32, 64, 128, 256)
HELD, PROMPT = 1000, 1000  # tokens in the cache of a user, and in the prompt, of the scene "pass"


class Server(CourseWidget):
    """What a server of Llama 3.1 8B on one H100 can do, by the roofline.

    In the scene "pass", one pass writes a token for each of so many users. In the scene "run",
    requests arrive, and their caches fill the memory; `attnlib.serving` says how.

    Parameters
    ----------
    scene : {"pass", "run"}
        What is drawn.
    users : int
        Of the scene "pass", 1 to 256, each with 1,000 tokens in the cache.
    rate : int
        Requests a second, 1 to 100.
    at_once : {1, 2, 4, ..., 256}
        Requests that are written at once, at most.
    continuous, paged, prefixes, chunked, speculative, eight_bit : bool
        The ideas that the server uses.
    prompt, output, shared : int
        Tokens of a prompt and of an answer, on average, and those at the beginning of each prompt
        that are the same in all: 10 to 2000, 10 to 500, 0 to 2000.
    requests : int
        How many arrive, 1 to 200.
    seed : int
        Of their times and lengths, 0 to 99.
    at : int
        The moment at which the memory is shown, in thousandths of the whole time.

    Raises
    ------
    ValueError
        For a number outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a choice that does not exist.
    """

    scene = traitlets.Enum(SCENES, "pass").tag(sync=True)
    users = Whole(1, 256, 1).tag(sync=True)
    rate = Whole(1, 100, 40).tag(sync=True)
    at_once = traitlets.Enum(AT_ONCE, 256).tag(sync=True)
    continuous = traitlets.Bool(False).tag(sync=True)
    paged = traitlets.Bool(False).tag(sync=True)
    prefixes = traitlets.Bool(False).tag(sync=True)
    chunked = traitlets.Bool(False).tag(sync=True)
    speculative = traitlets.Bool(False).tag(sync=True)
    eight_bit = traitlets.Bool(False).tag(sync=True)
    prompt = Whole(10, 2000, 500).tag(sync=True)
    output = Whole(10, 500, 200).tag(sync=True)
    shared = Whole(0, 2000, 0).tag(sync=True)
    requests = Whole(1, 200, 200).tag(sync=True)
    seed = Whole(0, 99, 0).tag(sync=True)
    at = Whole(0, 1000, 250).tag(sync=True)

    def __init__(self, scene="pass", **traits):
        super().__init__(scene=scene, **traits)

    @property
    def settings(self):
        """The settings of the simulation, as `attnlib.serving` takes them."""
        names = ("requests", "seed", "rate", "prompt", "output", "shared", "at_once")
        return serving.Settings(**{name: getattr(self, name) for name in names + serving.IDEAS})

    @property
    def noticed(self):
        """What the users notice in the scene "run", as `attnlib.serving.simulate` returns it."""
        return serving.simulate(self.settings)

    @property
    def times(self):
        """Seconds of one pass in the scene "pass": {"writing": ..., "reading": ...}."""
        model, processor = serving.LLAMA_8B, serving.H100
        n, bytes_ = self.users, model.cache_bytes()
        pairs = PROMPT * (PROMPT + 1) // 2
        writing = serving.pass_work(model, n, n, n * HELD, n * HELD, bytes_)
        reading = serving.pass_work(model, PROMPT, 1, pairs, PROMPT, bytes_)
        return {
            "writing": serving.seconds(processor, writing),
            "reading": serving.seconds(processor, reading),
        }
