"""ConfigReader: a published configuration as a layer, its parameters, its cache and its code."""

import json

import traitlets

from attnlib.models.sizes import sizes
from attnlib.widgets.kit.base import CourseWidget, Whole

# What the files config.json of these models say of their sizes and parts.
_SHARED = {"hidden_act": "silu", "tie_word_embeddings": False}
PUBLISHED = {
    "Llama 3.1 8B": {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "vocab_size": 128256, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
        "rope_theta": 500000.0,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    } | _SHARED,
    "Qwen3 8B": {
        "model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 12288, "vocab_size": 151936, "rms_norm_eps": 1e-6,
        "max_position_embeddings": 40960, "rope_theta": 1000000, "rope_scaling": None,
        "attention_bias": False, "sliding_window": None, "use_sliding_window": False,
        "max_window_layers": 36,
    } | _SHARED,
    "Gemma 3 1B": {
        "model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "intermediate_size": 6912, "vocab_size": 262144, "rms_norm_eps": 1e-6,
        "max_position_embeddings": 32768, "rope_theta": 1000000, "rope_local_base_freq": 10000,
        "rope_scaling": None, "query_pre_attn_scalar": 256, "sliding_window": 512,
        "sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh",
    },
    "gpt-oss 20B": {
        "model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
        "vocab_size": 201088, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
        "rope_theta": 150000, "attention_bias": True, "sliding_window": 128, "swiglu_limit": 7.0,
        "rope_scaling": {
            "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 4096, "truncate": False,
        },
    } | _SHARED,
    "DeepSeek V3": {
        "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
        "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "intermediate_size": 18432, "first_k_dense_replace": 3, "moe_intermediate_size": 2048,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "n_group": 8, "topk_group": 4, "scoring_func": "sigmoid", "vocab_size": 129280,
        "rms_norm_eps": 1e-6, "max_position_embeddings": 163840, "rope_theta": 10000,
        "rope_scaling": {
            "type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
            "original_max_position_embeddings": 4096,
        },
    } | _SHARED,
    "GLM-5": {
        "model_type": "glm_moe_dsa", "hidden_size": 6144, "num_hidden_layers": 78,
        "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 2048,
        "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
        "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048,
        "intermediate_size": 12288, "first_k_dense_replace": 3, "moe_intermediate_size": 2048,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "n_group": 1, "topk_group": 1, "scoring_func": "sigmoid", "vocab_size": 154880,
        "rms_norm_eps": 1e-5, "max_position_embeddings": 202752, "rope_theta": 1000000,
    } | _SHARED,
}  # fmt: skip


class ConfigReader(CourseWidget):
    """The layer that a published configuration describes, and what it costs.

    Parameters
    ----------
    config : str
        What a file config.json holds, as text; that of Llama 3.1 8B unless given.
    tokens : int
        After how many tokens the size of the cache is shown, 1 to 1,048,576.

    Raises
    ------
    ValueError
        If `config` is no JSON, or no configuration whose sizes are known, or `tokens` is out of
        bounds.
    traitlets.TraitError
        For a value of the wrong type.
    """

    config = traitlets.Unicode(json.dumps(PUBLISHED["Llama 3.1 8B"])).tag(sync=True)
    tokens = Whole(1, 2**20, 32_768).tag(sync=True)
    published = traitlets.Dict(read_only=True).tag(sync=True, constant=True)

    @traitlets.default("published")
    def _published(self):
        return PUBLISHED

    @traitlets.validate("config")
    def _check_config(self, proposal):
        try:
            config = json.loads(proposal["value"])
        except json.JSONDecodeError as error:
            raise ValueError(f"config must be JSON; got {error}") from None
        sizes(config)
        return proposal["value"]

    @property
    def sizes(self):
        """The parameters and the cache of the model."""
        return sizes(json.loads(self.config))
