# What type checkers and editors see of the names that __init__.py loads when they are used.
from streamcut.calibration import calibrate as calibrate
from streamcut.evaluation import evaluate as evaluate
from streamcut.exports.export import export as export
from streamcut.io.conversion.convert import convert as convert
from streamcut.io.conversion.create import NewStore as create  # noqa: F401, N813
from streamcut.io.opening import open_dataset as open  # noqa: A004, F401
from streamcut.models.files import load_model as load_model
from streamcut.models.files import save_model as save_model
from streamcut.named_weights import weights as weights
from streamcut.prediction import predict as predict
from streamcut.training import train as train
from streamcut.tuning import tune as tune
from streamcut.verification import verify as verify

__version__: str
