"""How large a language model is, from its configuration alone: its parameters and its cache."""

from dataclasses import dataclass

from attnlib.inputs import read_size
from attnlib.models.published import FAMILIES, Fields

LATENT = "deepseek_v3", "glm_moe_dsa"  # with latent attention, which causal_lm does not have
WITH_EXPERTS = ("gpt_oss",)  # of those that causal_lm supports


@dataclass(frozen=True)
class LayerSizes:
    """The sizes of one layer.

    Parameters
    ----------
    attention, feed_forward, norms : int
        Their parameters, biases included.
    unused : int
        Parameters of `feed_forward` that belong to experts which a token does not use.
    cached : int
        How many numbers the cache keeps for each token.
    window : int or None
        For how many tokens it keeps them; None is all.
    """

    attention: int
    feed_forward: int
    norms: int
    unused: int
    cached: int
    window: int | None


@dataclass(frozen=True)
class ModelSizes:
    """The sizes of a language model: its two tables, its layers and its last norm.

    Parameters
    ----------
    embedding : int
        Parameters of the embedding table.
    unembedding : int
        Parameters of the output projection; 0 if it is the embedding table.
    layers : list of LayerSizes
    last_norm : int
    """

    embedding: int
    unembedding: int
    layers: list
    last_norm: int

    @property
    def total(self):
        """All parameters."""
        of_layers = sum(each.attention + each.feed_forward + each.norms for each in self.layers)
        return self.embedding + of_layers + self.last_norm + self.unembedding

    @property
    def active(self):
        """The parameters that take part in the products for one token.

        Without experts that it does not use, and without the embedding table where that is no
        output projection as well: only one row of it is looked up.
        """
        looked_up = self.embedding if self.unembedding else 0
        return self.total - looked_up - sum(each.unused for each in self.layers)

    def cache(self, n_tokens, bytes_each=2):
        r"""Return how many bytes the cache takes after `n_tokens` tokens.

        .. math:: \text{bytes} \sum_l \min(n, \text{window}_l)\, \text{cached}_l
        """
        n_tokens = read_size(n_tokens, "n_tokens")
        bytes_each = read_size(bytes_each, "bytes_each", least=1)
        kept = (min(n_tokens, each.window or n_tokens) * each.cached for each in self.layers)
        return bytes_each * sum(kept)


def sizes(config):
    """Return the sizes of a language model from the dictionary of its config.json.

    Counted is what `causal_lm` supports, and besides it "deepseek_v3", with latent attention and
    experts, and "glm_moe_dsa", which adds an indexer to each layer. The extra layers that predict
    further tokens are not counted. Fields that change no size are not looked at.

    Parameters
    ----------
    config : dict

    Returns
    -------
    ModelSizes

    Raises
    ------
    TypeError
        If `config` is not a dict, or a size is not a whole number.
    ValueError
        If the model type is not known, a size is missing or below 1, a token uses more experts than
        there are, or layers share an indexer.

    Source
    ------
    The shapes are those of Hugging Face's transformers, version 5.23, with whose models the tests
    compare the totals.
    """
    fields = Fields(config)
    model_type = fields.required("model_type")
    known = [*FAMILIES, *LATENT]
    if model_type not in known:
        raise ValueError(
            f"model_type of config must be one of {', '.join(known)}; got {model_type!r}"
        )
    n_tokens, d_model = fields.size("vocab_size"), fields.size("hidden_size")
    if model_type in LATENT:
        layers, tied = _latent_layers(fields, d_model, model_type), False
    else:
        family = FAMILIES[model_type]
        layers, tied = _layers(fields, d_model, family, model_type), family.tied
    tied = fields.either("tie_word_embeddings", [True, False], tied)
    table = n_tokens * d_model
    return ModelSizes(table, 0 if tied else table, layers, d_model)


def _layers(fields, d_model, family, model_type):
    """Return the sizes of the layers of a model that `causal_lm` supports."""
    n_layers, n_heads = fields.size("num_hidden_layers"), fields.size("num_attention_heads")
    n_kv_heads = fields.size("num_key_value_heads", n_heads)
    d = fields.size("head_dim", max(d_model // n_heads, 1))
    of_queries, of_keys = n_heads * d, n_kv_heads * d
    biased = family.biased and fields.either("attention_bias", [True, False], False)
    attention = 2 * d_model * (of_queries + of_keys)
    attention += biased * (of_queries + 2 * of_keys + d_model) + family.sinks * n_heads
    norms = len(family.norms) * d_model
    norms += {"": 0, "each": 2 * d, "all": of_queries + of_keys}[family.norms_of_heads]
    network = _experts if model_type in WITH_EXPERTS else _network
    feed_forward, unused = network(fields, d_model)
    return [
        LayerSizes(attention, feed_forward, norms, unused, 2 * of_keys, window)
        for window in family.windows(fields, n_layers)
    ]


def _network(fields, d_model):
    """Return the parameters of a feed-forward network, and that a token uses all of them."""
    d_ff = fields.size("intermediate_size")
    biased = fields.either("mlp_bias", [True, False], False)
    return 3 * d_model * d_ff + biased * (2 * d_ff + d_model), 0


def _experts(fields, d_model):
    """Return the parameters of a mixture of experts, and those that a token does not use."""
    d_ff = fields.size("intermediate_size")
    n, k = fields.experts("num_local_experts")
    expert = 3 * d_model * d_ff + 2 * d_ff + d_model
    return n * expert + d_model * n + n, (n - k) * expert


def _latent_layers(fields, d_model, model_type):
    """Return the sizes of layers with latent attention, and with experts after the first few."""
    n_layers, n_heads = fields.size("num_hidden_layers"), fields.size("num_attention_heads")
    of_query, of_latent = fields.size("q_lora_rank"), fields.size("kv_lora_rank")
    plain, turned = fields.size("qk_nope_head_dim"), fields.size("qk_rope_head_dim")
    d_v = fields.size("v_head_dim")
    cached = of_latent + turned
    attention = d_model * (of_query + cached) + of_query * n_heads * (plain + turned)
    attention += of_latent * n_heads * (plain + d_v) + n_heads * d_v * d_model
    norms = 2 * d_model + of_query + of_latent
    if model_type == "glm_moe_dsa":
        parameters, key = _indexer(fields, d_model, of_query, n_layers)
        attention, cached = attention + parameters, cached + key
    expert = 3 * d_model * fields.size("moe_intermediate_size")
    n, k = fields.experts("n_routed_experts")
    router = n * d_model
    experts = (n + fields.size("n_shared_experts")) * expert + router
    dense = 3 * d_model * fields.size("intermediate_size")
    first = read_size(fields.required("first_k_dense_replace"), "first_k_dense_replace of config")
    return [
        LayerSizes(attention, dense, norms, 0, cached, None)
        if i < first
        else LayerSizes(attention, experts, norms, (n - k) * expert, cached, None)
        for i in range(n_layers)
    ]


def _indexer(fields, d_model, of_query, n_layers):
    """Return the parameters of an indexer, and how many numbers it keeps of a token."""
    each = {"index_topk_freq": 1, "index_topk_pattern": "F" * n_layers}
    for name, own in (each | {"indexer_types": ["full"] * n_layers}).items():
        if fields.value(name, own) != own:
            raise ValueError(
                f"{name} of config must give each layer an indexer of its own; got "
                f"{fields.value(name)!r}"
            )
    n_heads, d = fields.size("index_n_heads"), fields.size("index_head_dim")
    queries_and_weights = of_query * n_heads * d + d_model * n_heads
    return queries_and_weights + d_model * d + 2 * d, d  # one key, with a layer norm
