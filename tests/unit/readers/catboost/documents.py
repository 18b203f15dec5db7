"""A small document of CatBoost, written by hand: it needs no library."""

import copy
import json
from pathlib import Path
from typing import Any

from feta import Categorical, FeatureSpace, Integer, Real

SPACE = FeatureSpace(
    (
        Real("x", -9, 9, missing=True),
        Categorical("color", ("red", "green", "blue"), sensitive=True),
        Integer("age", 0, 9, sensitive=True),
    )
)

# The number of "green", as a trained model stores it.
GREEN = 1390465085

KEY = '{"identifier":[{"cat_feature_index":0,"combination_element":"cat_feature_value"}]}'

DOCUMENT: dict[str, Any] = {
    "features_info": {
        "float_features": [
            {
                "feature_id": "x",
                "flat_feature_index": 0,
                "borders": [-1.5, 0.25],
                "nan_value_treatment": "AsTrue",
            },
            {
                "feature_id": "age",
                "flat_feature_index": 2,
                "borders": [4.5],
                "nan_value_treatment": "AsIs",
            },
        ],
        "categorical_features": [
            {"feature_id": "color", "flat_feature_index": 1, "values": [GREEN]},
        ],
    },
    "model_info": {"params": {"loss_function": {"type": "Logloss", "params": {}}}},
    "oblivious_trees": [
        {
            "leaf_values": [1, 2, 4, 8],
            "splits": [
                {"split_index": 1, "split_type": "FloatFeature", "border": 0.25},
                {"split_index": 3, "split_type": "OneHotFeature", "value": GREEN},
            ],
        },
        {
            "leaf_values": [0.5, -16],
            "splits": [{"split_index": 2, "split_type": "FloatFeature", "border": 4.5}],
        },
    ],
    "scale_and_bias": [1, [0.125]],
}

NESTED = [
    {
        "split": DOCUMENT["oblivious_trees"][1]["splits"][0],
        "left": {"value": 3},
        "right": {
            "split": DOCUMENT["oblivious_trees"][0]["splits"][0],
            "left": {"value": 5},
            "right": {"value": 7},
        },
    }
]

STATISTIC = {
    "ctr_type": "Borders",
    "elements": [{"cat_feature_index": 0, "combination_element": "cat_feature_value"}],
    "identifier": KEY,
    "borders": [7.5],
    "prior_numerator": 1,
    "prior_denomerator": 1,
    "scale": 15,
    "shift": 0,
    "target_border_idx": 0,
}


def changed(path: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return the document with another value at a path such as `trees.0.value`; None removes it."""
    document = copy.deepcopy(DOCUMENT)
    *parents, last = path.split(".")
    place: Any = document
    for name in parents:
        place = place[int(name)] if isinstance(place, list) else place[name]
    key: Any = int(last) if isinstance(place, list) else last
    if value is None:
        del place[key]
    else:
        place[key] = value
    return document


def write(path: Path, document: Any) -> Path:  # noqa: ANN401 - any JSON value
    """Write a document as JSON."""
    path.write_text(json.dumps(document))
    return path
