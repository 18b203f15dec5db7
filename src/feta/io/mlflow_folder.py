"""MLflow models from code: the `.feta` file is the artifact, and nothing is pickled."""

import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

from feta.errors import MissingExtra
from feta.io.model_file import save_model
from feta.io.table_options import TableOptions
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace
from feta.vote.stored_votes import Decider

# MLflow stores this text and runs it when the model is loaded.
CODE = '''"""Fair decisions of a FETA model; MLflow runs this file to load the model."""

from typing import Any

import mlflow
import pandas as pd

from feta import FairPredictor


class FairModel(mlflow.pyfunc.PythonModel):
    """One decision per row; sensitive columns are not needed and never read."""

    def load_context(self, context: Any) -> None:
        """Load the model and its votes."""
        self.predictor = FairPredictor.load(context.artifacts["model"])

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> list[Any]:
        """Return the name of each decision, or the score of a regression."""
        model = self.predictor.model
        people = model.space.encode(
            model_input, sensitive=self.predictor.sensitive, limits="open"
        )
        self.predictor.admit(people)
        return [model.describe(outcome) for outcome in self.predictor.decide(people).tolist()]


mlflow.models.set_model(FairModel())
'''


def write_mlflow(decider: Decider, folder: Path, *, table: TableOptions | None = None) -> None:
    """Write an MLflow model that decides like `FairPredictor`; the folder must not exist."""
    try:
        import mlflow  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtra("mlflow", "mlflow") from error
    with tempfile.TemporaryDirectory() as scratch:
        code, model = Path(scratch, "fair_model.py"), Path(scratch, "model.feta")
        code.write_text(CODE, encoding="utf-8")
        save_model(decider, model, table=table)
        packages = {"feta-fair": version("feta-fair"), "mlflow-skinny": mlflow.__version__}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about input examples, which would store a person
            mlflow.pyfunc.save_model(
                path=str(folder),
                python_model=str(code),
                artifacts={"model": str(model)},
                signature=_signature(decider),
                pip_requirements=[f"{name}=={number}" for name, number in packages.items()],
            )


def _signature(decider: Decider) -> Any:  # noqa: ANN401 - mlflow is optional
    from mlflow.models import ModelSignature  # noqa: PLC0415 - optional
    from mlflow.types import ColSpec, Schema  # noqa: PLC0415 - optional

    space, rule = decider.model.space, decider.model.rule
    inputs: list[Any] = [
        ColSpec(_type_of(attribute), attribute.name, required=True)
        for attribute in _read_columns(space)
    ]
    decision = "string" if rule.tolerance is None else "double"
    return ModelSignature(inputs=Schema(inputs), outputs=Schema([ColSpec(decision)]))


def _read_columns(space: FeatureSpace) -> list[Attribute]:
    """Return the attributes that a fair decision reads from a table."""
    return [a for a in space.attributes if not (isinstance(a, Derived) or space.is_sensitive(a))]


def _type_of(attribute: Attribute) -> Any:  # noqa: ANN401 - mlflow is optional
    """Return MLflow's type of a column as pandas reads it.

    A column of integers or booleans has another type where a cell is empty, and MLflow would refuse
    one of the two; FETA checks the cells itself.
    """
    from mlflow.types.schema import AnyType  # noqa: PLC0415 - optional

    match attribute:
        case Categorical():
            kind = _kind_of_values(attribute)
        case Integer():
            kind = "long"
        case _:
            return "double"
    return AnyType() if attribute.missing and kind != "string" else kind  # type: ignore[no-untyped-call]  # MLflow has no types here


def _kind_of_values(attribute: Categorical) -> str:
    kinds = {type(value) for value in attribute.values}
    names = {bool: "boolean", int: "long"}
    return names.get(kinds.pop(), "string") if len(kinds) == 1 else "string"
