"""A layer of Llama: its published weights become an `EncoderLayer` of this library."""

from functools import partial

from attnlib.feed_forward import SwiGLU
from attnlib.inputs import read_floats, read_number
from attnlib.layers import EncoderLayer
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import RMSNorm
from attnlib.positions import rotary


def from_llama(state_dict, prefix, n_heads, n_kv_heads, *, base, eps):
    """Return one layer of Llama, from its published weights, as an `EncoderLayer`.

    Call it with tokens (..., n, d_model) and a causal mask: in Llama every layer has one. A
    configuration with `rope_scaling`, as from Llama 3.1 on, turns by other angles: give the
    layer's attention another `turn`.

    Parameters
    ----------
    state_dict : dict of str to array of float
        The weights under their published names, each matrix as its transpose, as PyTorch stores
        it; weights of other layers are ignored.
    prefix : str
        What the names of this layer begin with, "model.layers.0" for the first.
    n_heads, n_kv_heads : int
        num_attention_heads and num_key_value_heads of the published configuration.
    base : float
        Its rope_theta.
    eps : float
        Its rms_norm_eps.

    Returns
    -------
    EncoderLayer
        Pre-norm, of `RMSNorm`, `SwiGLU` and grouped heads that `rotary` turns by halves.

    Raises
    ------
    TypeError
        If a weight does not hold floats, or a number is of the wrong kind.
    ValueError
        If a weight is missing or unknown (a bias, a norm of the queries: then it is a layer of
        another model), the shapes do not fit, or `base` or `eps` is out of bounds.

    Source
    ------
    Touvron et al. 2023, *LLaMA*, section 2.2, and *Llama 2*, section 2.2. The names are those of
    Hugging Face's LlamaForCausalLM, which has permuted the published w_q and w_k for "halves".
    """
    base = read_number(base, "base", "above 0")
    names = [f"self_attn.{letter}_proj" for letter in "qkvo"]
    names += [f"mlp.{part}_proj" for part in ("gate", "up", "down")]
    names += ["input_layernorm", "post_attention_layernorm"]
    expected = [f"{prefix}.{name}.weight" for name in names]
    angles = f"{prefix}.self_attn.rotary_emb.inv_freq"  # in older files: they follow from `base`
    found = {name for name in state_dict if name.startswith(f"{prefix}.") and name != angles}
    if found != set(expected):
        missing, unknown = sorted(set(expected) - found), sorted(found - set(expected))
        raise ValueError(
            f"state_dict must hold the nine weights of a layer of Llama below {prefix!r}; "
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        )
    *matrices, norm_1, norm_2 = (read_floats(state_dict[name], name) for name in expected)
    w_q, w_k, w_v, w_o, w_gate, w_up, w_down = (matrix.T for matrix in matrices)
    turn = partial(rotary, base=base, layout="halves")
    attention = MultiHeadAttention(w_q, w_k, w_v, w_o, n_heads, n_kv_heads=n_kv_heads, turn=turn)
    norms = RMSNorm(norm_1, eps), RMSNorm(norm_2, eps)
    return EncoderLayer(attention, SwiGLU(w_gate, w_up, w_down), *norms, norm_first=True)
