"""The instruments of the course: ipywidgets that also live in a page without a kernel."""

from attnlib.widgets.backwards import Backwards
from attnlib.widgets.chain_rule import ChainRule
from attnlib.widgets.config_reader import ConfigReader
from attnlib.widgets.cost_calculator import CostCalculator
from attnlib.widgets.dot_product import DotProduct
from attnlib.widgets.encoder import Encoder
from attnlib.widgets.flow import Flow
from attnlib.widgets.guess import Guess
from attnlib.widgets.heads_viewer import HeadsViewer
from attnlib.widgets.inspector import Inspector
from attnlib.widgets.layer_explorer import LayerExplorer
from attnlib.widgets.letters import Letters
from attnlib.widgets.loss_curve import LossCurve
from attnlib.widgets.mask_painter import MaskPainter
from attnlib.widgets.parity_atlas import ParityAtlas
from attnlib.widgets.plane import Plane
from attnlib.widgets.positions_explorer import PositionsExplorer
from attnlib.widgets.predict import Predict
from attnlib.widgets.progress import Progress
from attnlib.widgets.quiz import Quiz
from attnlib.widgets.recall_explorer import RecallExplorer
from attnlib.widgets.scaling_explorer import ScalingExplorer
from attnlib.widgets.server import Server
from attnlib.widgets.swap import Swap
from attnlib.widgets.then_and_now import ThenAndNow
from attnlib.widgets.trainer import Trainer
from attnlib.widgets.writer import Writer

__all__ = [
    "Backwards",
    "ChainRule",
    "ConfigReader",
    "CostCalculator",
    "DotProduct",
    "Encoder",
    "Flow",
    "Guess",
    "HeadsViewer",
    "Inspector",
    "LayerExplorer",
    "Letters",
    "LossCurve",
    "MaskPainter",
    "ParityAtlas",
    "Plane",
    "PositionsExplorer",
    "Predict",
    "Progress",
    "Quiz",
    "RecallExplorer",
    "ScalingExplorer",
    "Server",
    "Swap",
    "ThenAndNow",
    "Trainer",
    "Writer",
]
