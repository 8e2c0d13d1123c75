"""The keys and values of the tokens that an attention has read, kept for the next ones."""

from dataclasses import dataclass

import numpy as np

from attnlib.inputs import read_size, read_tokens


@dataclass(eq=False)
class KeyValueCache:
    r"""The keys and values of the tokens so far, for the attention of one layer (a KV cache).

    .. math::

        K_{\le t} &= [K_{< t};\; k_t] \\
        V_{\le t} &= [V_{< t};\; v_t]

    Hand it to `MultiHeadAttention` or `EncoderLayer` with the new tokens alone. They come at the
    positions after those before, and each attends to itself and to the tokens before it. So the
    output is the one that all tokens at once, with a causal mask, would get.

    Its `n` is the number of tokens so far, which is the position of the next one. Its `keys` and
    `values` are arrays (..., n_kv_heads, n_kept, d_k) and (..., n_kv_heads, n_kept, d_v), None
    before the first token.

    Parameters
    ----------
    window : int, optional
        How many tokens each one may attend to, itself and the last before it; all unless given.
        What no later token can attend to is dropped.

    Raises
    ------
    TypeError
        If `window` is not a whole number.
    ValueError
        If `window` is below 1.

    Source
    ------
    Shazeer 2019, *Fast Transformer Decoding*, section 2.4. `window` is Jiang et al. 2023,
    *Mistral 7B*, section 2, the rolling buffer cache.
    """

    window: int | None = None

    def __post_init__(self):
        if self.window is not None:
            self.window = read_size(self.window, "window", least=1)
        self.n, self.keys, self.values = 0, None, None
        # A reference to the attention whose keys and values these are, from its first call on:
        # a weak one, so that a copy of the cache is still that of this attention.
        self.attention = None

    @property
    def n_kept(self):
        """The number of tokens whose keys and values are kept."""
        return 0 if self.keys is None else self.keys.shape[-2]

    def mask(self, n):
        """Return who may attend to whom, bool (n, n_kept + n), of the next `n` tokens."""
        queries = np.arange(self.n, self.n + read_size(n, "n"))
        distance = queries[:, None] - np.arange(self.n - self.n_kept, self.n + n)
        return (distance >= 0) & (self.window is None or distance < self.window)

    def extend(self, keys, values):
        """Take the keys and values of the next tokens (..., n_kv_heads, n, d); return all kept.

        Raises
        ------
        TypeError
            If they do not hold floats.
        ValueError
            If they do not fit each other, or do not have the batch, the heads and the widths of
            what is kept.
        """
        keys, values = read_tokens(keys, "keys", None), read_tokens(values, "values", None)
        if keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                "keys and values must have one shape, their last axis apart; "
                f"got {keys.shape} and {values.shape}"
            )
        n_new = keys.shape[-2]
        if self.keys is not None:
            for name, new, kept in (("keys", keys, self.keys), ("values", values, self.values)):
                if new.shape[:-2] + new.shape[-1:] != kept.shape[:-2] + kept.shape[-1:]:
                    raise ValueError(
                        f"{name} must have the shape of those in the cache, {kept.shape}, the "
                        f"number of tokens apart; got {new.shape}"
                    )
            keys = np.concatenate([self.keys, keys], axis=-2)
            values = np.concatenate([self.values, values], axis=-2)
        self.n += n_new
        # The next token sees itself, too: of the tokens before it, window - 1 are left.
        first = 0 if self.window is None else max(keys.shape[-2] - self.window + 1, 0)
        self.keys, self.values = keys[..., first:, :], values[..., first:, :]
        return keys, values
