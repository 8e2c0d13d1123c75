"""Random states of every widget, as hypothesis strategies that make the widgets."""

from hypothesis import strategies as st

from attnlib.widgets import AttentionExplorer, ScalingExplorer
from attnlib.widgets.attention_explorer import MASKS
from attnlib.widgets.core import DIVISORS

words = st.lists(
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=12),
    min_size=1,
    max_size=13,
)

SAMPLES = {
    AttentionExplorer: st.builds(
        AttentionExplorer,
        sentence=words.map(" ".join),
        d_k=st.integers(1, 512),
        mask=st.sampled_from(MASKS),
        length=st.integers(1, 64),
        width=st.integers(0, 63),
        divisor=st.sampled_from(list(DIVISORS)),
        row=st.integers(0, 63),
    ),
    ScalingExplorer: st.builds(
        ScalingExplorer, d_k=st.integers(1, 1024), divisor=st.sampled_from(list(DIVISORS))
    ),
}
