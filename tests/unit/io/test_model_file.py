import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import feta.rule
from feta import (
    Categorical,
    Derived,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    NetworkError,
    Real,
    SchemaError,
    Threshold,
    load_model,
    save_model,
)
from feta.io.model_file import FORMAT, RULES
from feta.rule import Argmax, OneVsRest, Rule, Tolerance
from feta.scorer.network.layers import Columns, LookupTable

SPACE = FeatureSpace(
    (
        Integer("age", 18, 90, sensitive=True),
        Categorical('a "b" \\ ü\n', ("x", 1, False), sensitive=True),
        Levels("hours", (0.0, 37.5)),
        Derived("band", "age", (("young", 18, 30), ("old", 31, 90))),
        Real("income", -1.5, 1e6),
    )
)
RNG = np.random.default_rng(0)


def network(outputs: int = 1) -> Network:
    plain = Network.from_layers(
        [
            (RNG.normal(size=(3, 8)), RNG.normal(size=3)),
            (RNG.normal(size=(outputs, 3)), np.ones(outputs)),
        ],
        source="float64",
        equality="below",
        sigmoid=True,
    )
    slopes = plain.first.slopes.copy()
    slopes[:, 4] = 0.0
    table = LookupTable(4, np.array([0.0, 37.5]), RNG.normal(size=(2, 3)))
    first = Columns(plain.first.bias, slopes, (table,), np.array([1.0, 2.0, 3.0]))
    return replace(plain, first=first)


MODEL = Model(SPACE, network(), Threshold(0.25, "below"), outcomes=("no", "yes"))


@pytest.mark.parametrize(
    "rule",
    [
        Threshold(-1.5, equality="unfavorable"),
        Argmax(("a", "b", "c")),
        OneVsRest(("a", "b", "c"), "b"),
        Tolerance(0.5),
    ],
)
def test_a_saved_model_is_read_back_unchanged(rule: Rule, tmp_path: Path) -> None:
    model = Model(SPACE, network(rule.outputs), rule)
    path = tmp_path / "m.feta"
    save_model(model, path)
    loaded = load_model(path)
    assert loaded.fingerprint == model.fingerprint
    assert (loaded.space, loaded.rule, loaded.outcomes) == (model.space, model.rule, model.outcomes)
    for name in ("equality", "source", "sigmoid"):
        assert getattr(loaded.network, name) == getattr(model.network, name)
    assert [path.name for path in tmp_path.iterdir()] == ["m.feta"]


def test_every_public_rule_can_be_saved() -> None:
    public = {
        name for name in feta.rule.__all__ if hasattr(getattr(feta.rule, name), "kernel_rule")
    }
    assert set(RULES) == public - {"Rule"}


def test_a_rule_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    class Thresholds(Threshold):
        """A rule of another package."""

    model = Model(SPACE, network(), Thresholds(0.0))
    message = "^a .feta file cannot store the rule: got 'Thresholds'; expected one of 'Argmax', "
    with pytest.raises(SchemaError, match=message):
        save_model(model, tmp_path / "m.feta")
    assert not any(tmp_path.iterdir())


def test_saving_replaces_a_file_at_once_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "m.feta"
    path.write_text("old")
    save_model(MODEL, path)
    assert load_model(path).fingerprint == MODEL.fingerprint
    with pytest.raises(FileNotFoundError):
        save_model(MODEL, tmp_path / "nowhere" / "m.feta")


def edited(path: Path, edit: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    """Save the model with a changed description or changed arrays."""
    save_model(MODEL, path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    description = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][FORMAT])
    arrays = dict(load(content))
    edit(description, arrays)
    path.write_bytes(save(arrays, {FORMAT: json.dumps(description)}))
    return path


def changes(path: str, value: object) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    *parents, last = path.split(".")

    def edit(node: Any, _arrays: dict[str, np.ndarray]) -> None:  # noqa: ANN401 - JSON
        for key in parents:
            node = node[int(key) if isinstance(node, list) else key]
        node[int(last) if isinstance(node, list) else last] = value

    return edit


DAMAGED = "the file is damaged: got .*; expected a complete .feta model; save it again"
CHANGED = "the content of the file does not match its fingerprint; save it again"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (changes("version", 3), "unsupported format version: got 3; expected 1 or 2; update FETA"),
        (changes("version", None), "unsupported format version: got None; expected 1"),
        (changes("rule.value", 0.5), CHANGED),
        (changes("network.sigmoid", False), CHANGED),
        (changes("fingerprints.model", "0"), CHANGED),
        (changes("space.0.high", 91), "band"),
        (changes("space.0.high", 10**400), "invalid limit for 'age'"),
        (changes("space.4.high", 10**400), DAMAGED),
        (changes("space.0.kind", "person"), DAMAGED),
        (changes("space.0.name", ""), "invalid attribute name: got"),
        (changes("space.0.name", []), "invalid attribute name: got"),
        (changes("space", []), "no sensitive attribute"),
        (changes("space", None), DAMAGED),
        (changes("rule", []), DAMAGED),
        (changes("rule.kind", "Coin"), DAMAGED),
        (changes("rule.value", "x"), "invalid threshold: got 'x'; expected a finite number"),
        (
            changes("rule.value", float("nan")),
            "invalid threshold: got nan; expected a finite number",
        ),
        (changes("rule.favors", "sideways"), "invalid favors: got 'sideways'; expected one of"),
        (changes("outcomes", ["no", 1]), r"invalid outcomes in the file: got \('no', 1\)"),
        (changes("outcomes", ["no", "no"]), "invalid outcomes: got .*; expected 2 different names"),
        (changes("network.source", "float8"), "invalid source: got 'float8'; expected one of"),
        (changes("network.tables", ["x"]), DAMAGED),
        (
            changes("network.tables", [99]),
            "invalid table of column 99: .*; expected a column below",
        ),
        (changes("network.activations", ["relu"] * 2), DAMAGED),
        (changes("fingerprints", None), DAMAGED),
        (lambda _, arrays: arrays.pop("first.bias"), DAMAGED),
        (
            lambda _, arrays: arrays.update({"first.bias": np.ones(3, np.float32)}),
            "unsupported type of the array 'first.bias': got float32; expected float64",
        ),
        (
            lambda _, arrays: arrays.update({"first.bias": np.full(3, np.inf)}),
            "invalid bias of the first layer: got inf",
        ),
        (lambda _, arrays: arrays.update({"first.bias": np.ones(4)}), "bias of length out"),
        (lambda _, arrays: arrays.update({"layer0.slopes": np.ones((2, 1))}), "continuous|finger"),
        (lambda _, arrays: arrays.update({"layer0.breaks": np.ones(())}), "damaged|activation"),
    ],
)
def test_a_changed_model_is_rejected(
    edit: Callable[[dict[str, Any], dict[str, np.ndarray]], None], message: str, tmp_path: Path
) -> None:
    path = edited(tmp_path / "m.feta", edit)
    with pytest.raises(NetworkError, match=message) as rejected:
        load_model(path)
    assert str(rejected.value).startswith(f"{path}: ")


def nested() -> bytes:
    deep = {FORMAT: "[" * 100_000}
    return save({}, deep)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        struct.pack("<Q", 2**62) + b"{}",
        save({"x": np.ones(1)}),
        save({"x": np.ones(1)}, {FORMAT: "[]"}),
        save({"x": np.ones(1)}, {FORMAT: "{"}),
        nested(),
    ],
)
def test_a_file_of_another_format_is_rejected(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.feta").write_bytes(content)
    message = "the file is not a .feta model; expected a file written by feta.save_model"
    with pytest.raises(NetworkError, match=message):
        load_model(tmp_path / "m.feta")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"nowhere\.feta: there is no such file"):
        load_model(tmp_path / "nowhere.feta")
