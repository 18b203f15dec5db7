"""Encoders of the tested column in the pipeline."""

from collections.abc import Callable, Mapping

from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

from campaigns.tables.contents import Content

MIN_FREQUENCY = 0.2  # the last cell of a content is rarer
NUMERIC = ("passthrough", "scaler", "median-scaler")


def _imputed(strategy: str, step: BaseEstimator, content: Content) -> BaseEstimator:
    """Return an imputer for the content's missing cells, and a step after it."""
    constant = {"fill_value": content.values[0]} if strategy == "constant" else {}
    return make_pipeline(SimpleImputer(strategy=strategy, **constant), step)


def _ignore() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore")


ENCODERS: Mapping[str, Callable[[Content], BaseEstimator | str]] = {
    "onehot-ignore": lambda _: _ignore(),
    "onehot-error": lambda _: OneHotEncoder(handle_unknown="error"),
    "onehot-infrequent": lambda _: OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=MIN_FREQUENCY
    ),
    "onehot-drop-first": lambda _: OneHotEncoder(drop="first"),
    "onehot-drop-if-binary": lambda _: OneHotEncoder(drop="if_binary"),
    "ordinal": lambda _: OrdinalEncoder(),
    "ordinal-unknown": lambda _: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    ),
    "target": lambda _: TargetEncoder(random_state=0, cv=3),
    "frequent-onehot": lambda content: _imputed("most_frequent", _ignore(), content),
    "constant-onehot": lambda content: _imputed("constant", _ignore(), content),
    "passthrough": lambda _: "passthrough",
    "scaler": lambda _: StandardScaler(),
    "median-scaler": lambda content: _imputed("median", StandardScaler(), content),
}
