import json
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import (
    Categorical,
    Derived,
    DomainError,
    FairPredictor,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    NetworkError,
    Real,
)
from feta.auditing.auditor import Auditor
from feta.auditing.journal import AuditJournal
from feta.errors import OutsideLimits
from feta.io.schema_file import parse_schema
from feta.io.schema_writer import format_schema
from feta.scorer.network.fold import fold_scaling
from feta.scorer.network.layers import Measured
from feta.wider_limits import groups

SPACE = FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("hours", 0, 60),
        Levels("rooms", (1.0, 1.5, 2.0)),
        Real("income", 0.0, 100.0, missing=True),
    )
)
HIDDEN = np.array([[1.0, -0.5, 0.25, 0.125, 2.0], [0.5, 0.25, -1.0, -0.0625, 0.0]])
LAYERS = [(HIDDEN, [-2.0, 1.0]), (np.array([[1.0, -0.125]]), [-0.25])]
MODEL = Model(SPACE, Network.from_layers(LAYERS, source="float64"))
INSIDE = {"age": 1, "hours": 16, "rooms": 1.5, "income": 50.0}


def decide_exactly(record: dict[str, Any], age: int) -> bool:
    """Decide in exact fractions."""
    row = [age, record["hours"], record["rooms"], record["income"], 0]
    hidden = [
        sum((Fraction(float(w)) * Fraction(x) for w, x in zip(line, row, strict=True)), start)
        for line, start in zip(HIDDEN, (Fraction(-2), Fraction(1)), strict=True)
    ]
    first, second = (max(value, Fraction(0)) for value in hidden)
    return first - second / 8 - Fraction(1, 4) > 0


OUTSIDE: list[dict[str, Any]] = [
    {"income": 100.5},
    {"income": -7.0},
    {"income": 1e12},
    {"income": -1e20},
    {"hours": -1},
    {"hours": 61},
    {"hours": 10**12, "income": 8e12},
    {"rooms": 2.5},
    {"rooms": 40.0, "hours": 75},
    {"hours": 64, "income": 260.0},
]


@pytest.mark.parametrize("engine", ["auto", "exhaustive", "lattice"])
@pytest.mark.parametrize("change", OUTSIDE)
def test_a_person_outside_the_limits_is_decided_by_exact_scores(
    engine: str, change: dict[str, Any]
) -> None:
    record = INSIDE | change
    decisions = [decide_exactly(record, age) for age in range(5)]
    finding = feta.audit(MODEL, [record], engine=engine).findings[0]
    assert finding.status == ("fair" if len(set(decisions)) == 1 else "unfair")
    assert finding.decision == decisions[1]
    assert finding.fair_decision == (2 * sum(decisions) >= 5)
    people = SPACE.encode([record, INSIDE], limits="open")
    assert FairPredictor(MODEL, engine).decide(people)[0] == (2 * sum(decisions) >= 5)


def test_the_cases_contain_both_verdicts() -> None:
    cases = [{decide_exactly(INSIDE | change, age) for age in range(5)} for change in OUTSIDE]
    assert {len(case) for case in cases} == {1, 2}


def test_answers_do_not_depend_on_other_people() -> None:
    records = [INSIDE | change for change in [*OUTSIDE, {}, {"income": None}]]
    together = feta.audit(MODEL, records).findings
    for row, record in enumerate(records):
        alone = feta.audit(MODEL, [record]).findings[0]
        assert together[row].row == row
        for name in ("status", "decision", "fair_decision", "runtime", "alone"):
            assert getattr(together[row], name) == getattr(alone, name)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"income": np.inf},
        "income",
        "is invalid: got inf; expected a number from 0 to 100 or missing",
    ),
    ({"hours": 60.5}, "hours", "is invalid: got 60.5; expected an integer from 0 to 60"),
    ({"hours": 2.0**60}, "hours", "expected an integer from 0 to 60"),
    ({"rooms": 2.25}, "rooms", "is invalid: got 2.25; expected one of 1, 1.5, 2"),
    ({"rooms": 1.75}, "rooms", "is invalid: got 1.75; expected one of 1, 1.5, 2"),
    (
        {"income": 1e300},
        "income",
        "got .*e.300; expected a number from 0 to 100 or missing, because",
    ),
    ({"age": 5}, "age", "is invalid: got 5; expected an integer from 0 to 4"),
]


@pytest.mark.parametrize(("change", "column", "message"), REFUSED)
def test_a_person_who_cannot_be_decided_is_rejected_by_column_and_reason(
    change: dict[str, Any], column: str, message: str
) -> None:
    with pytest.raises(DomainError, match=message) as refused:
        feta.audit(MODEL, [INSIDE, INSIDE | change])
    assert (refused.value.column, refused.value.row) == (column, 1)


def test_a_strict_column_refuses_people_outside_its_limits() -> None:
    strict = Real("income", 0.0, 100.0, missing=True, strict=True)
    model = Model(FeatureSpace((*SPACE.attributes[:-1], strict)), MODEL.network)
    with pytest.raises(
        DomainError, match=r"'income' is invalid: .*; expected a number from 0 to 100"
    ):
        feta.audit(model, [INSIDE | {"income": 101.0}])


def test_numbers_that_overflow_in_the_source_are_refused() -> None:
    model = Model(SPACE, Network.from_layers(LAYERS))  # float32
    with pytest.raises(OutsideLimits, match="float32 arithmetic of the source could overflow"):
        feta.audit(model, [INSIDE | {"income": 1e38}])


def test_an_engine_that_does_not_accept_large_numbers_is_named() -> None:
    with pytest.raises(OutsideLimits, match=r"'income' is outside .* because .*lattice") as refused:
        feta.audit(MODEL, [INSIDE | {"income": 1e35}], engine="lattice")
    assert refused.value.column == "income"
    finding = feta.audit(MODEL, [INSIDE | {"income": 1e35}]).findings[0]
    assert finding.status == "fair"


def test_bands_follow_a_source_outside_its_limits() -> None:
    bands = Derived("band", "hours", (("few", 0, 60), ("many", 61, 90)))
    space = FeatureSpace((SPACE.attributes[0], Integer("hours", 0, 80), bands))
    model = Model(space, Network.from_layers([([[1.0, 0.0, 9.0, 0.0]], [-5.0])]))
    audit = feta.audit(model, [{"age": 1, "hours": 85}, {"age": 1, "hours": 20}])
    assert [finding.decision for finding in audit.findings] == [False, True]
    with pytest.raises(DomainError, match="'band' is invalid: got 0 bands for hours 95"):
        feta.audit(model, [{"age": 1, "hours": 95}])


def test_a_query_names_the_functions_that_accept_people_outside() -> None:
    person = SPACE.encode(INSIDE | {"hours": 70}, limits="open")[0]
    with pytest.raises(
        DomainError, match=r"got 70\.0; .*; feta.audit and FairPredictor.decide accept"
    ):
        feta.FairAt(MODEL, person)


def test_people_of_similar_magnitudes_share_a_wider_model() -> None:
    records = [INSIDE | {"income": income} for income in (101.0, 500.0, 999.0, 1001.0, 50.0)]
    parts = groups(MODEL, SPACE.encode(records, limits="open"))
    assert [rows.tolist() for _, rows in parts] == [[0, 1, 2], [3], [4]]
    assert parts[2][0] is MODEL


def test_votes_and_medians_accept_people_outside() -> None:
    people = SPACE.encode([INSIDE, INSIDE | {"hours": 70}], limits="open")
    weights = feta.VoteWeights.of(SPACE, {(4,): 3, (0,): 1})
    decisions = FairPredictor(MODEL, weights=weights).decide(people)
    assert decisions.tolist() == [
        decide_exactly(INSIDE, 4),
        decide_exactly(INSIDE | {"hours": 70}, 4),
    ]
    regression = Model(SPACE, MODEL.network, feta.Tolerance(0.5))
    wide = FeatureSpace((SPACE.attributes[0], Integer("hours", 0, 99), *SPACE.attributes[2:]))
    declared = Model(wide, MODEL.network, feta.Tolerance(0.5))
    medians = FairPredictor(regression).decide(people)
    assert medians.tolist() == FairPredictor(declared).decide(people).tolist()
    finding = feta.audit(regression, [INSIDE | {"hours": 70}]).findings[0]
    assert finding.fair_decision == medians[1]


def test_people_without_an_answer_are_named_by_their_rows() -> None:
    records = [INSIDE, INSIDE | {"hours": 70}, INSIDE | {"income": 1e4}]
    people = SPACE.encode(records, limits="open")
    predictor = FairPredictor(MODEL, "exhaustive", feta.Budget(evaluations=1))
    with pytest.raises(feta.Undecided) as refused:
        predictor.decide(people)
    assert refused.value.rows == (0, 1, 2)


def test_a_report_shows_people_outside_and_counts_them(tmp_path: Path) -> None:
    audit = feta.audit(MODEL, [INSIDE, INSIDE | {"hours": -1}, INSIDE | {"rooms": 2.5}])
    assert audit.pairs
    assert audit.summary.as_dict()["outside_limits"] == {
        "hours": {"below": 1, "above": 0},
        "rooms": {"below": 0, "above": 1},
    }
    audit.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1 person has rooms above the schema&#39;s maximum 2: this person is decided" in page


def test_a_journal_stores_the_pair_of_a_person_outside(tmp_path: Path) -> None:
    people = SPACE.encode(INSIDE | {"rooms": 2.5}, limits="open")
    findings = Auditor(MODEL).audit(people)
    assert findings[0].pair is not None
    with AuditJournal(tmp_path / "journal.sqlite", MODEL) as journal:
        journal.write(people, findings)
        finding = journal.known(people)[0]
    assert finding is not None
    assert finding.pair is not None
    assert finding.pair.counterpart.tolist() == findings[0].pair.counterpart.tolist()


TABLE = pd.DataFrame(
    {
        "age": [0, 1, 2, 3, 4] * 8,
        "hours": np.linspace(0, 60, 40).astype(int),
        "rooms": [1.0, 1.5, 2.0, 1.5] * 10,
        "income": np.linspace(0, 100, 40),
    }
)
PLAIN = FeatureSpace((*SPACE.attributes[:-1], Real("income", 0.0, 100.0)))


def read(step: Any, names: list[str]) -> tuple[Any, Model]:  # noqa: ANN401 - scikit-learn ships no types
    """Fit a pipeline with a step for some columns, and read it."""
    compose = pytest.importorskip("sklearn.compose")
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415 - an extra
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415 - an extra

    rest = [name for name in TABLE if name not in names]
    columns = compose.ColumnTransformer([("step", step, names), ("rest", StandardScaler(), rest)])
    labels = (TABLE["income"] + 10 * TABLE["age"] > 60).astype(int)
    pipeline = make_pipeline(columns, LogisticRegression()).fit(TABLE, labels)
    return pipeline, Model(PLAIN, feta.read_sklearn(pipeline, PLAIN))


def half(table: pd.DataFrame) -> Any:  # noqa: ANN401 - an array
    """Halve numbers within the limits only."""
    numbers = np.asarray(table, dtype=np.float64)
    return np.where(numbers <= 100, numbers / 2, -numbers)


def steps() -> dict[str, tuple[Any, str, float, str]]:
    """Return steps, their column, a number beyond its limits, and the reason of the refusal."""
    pytest.importorskip("sklearn")
    from sklearn.impute import SimpleImputer  # noqa: PLC0415 - an extra
    from sklearn.preprocessing import (  # noqa: PLC0415 - an extra
        FunctionTransformer,
        KBinsDiscretizer,
        MinMaxScaler,
    )

    table, local = "reads this column by a table", "known only within the limits"
    return {
        "clip": (MinMaxScaler(clip=True), "hours", 75, table),
        "bins": (KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), "hours", 75, table),
        "mark": (SimpleImputer(missing_values=-1), "hours", -1, local),
        "unknown": (FunctionTransformer(half), "income", 120, local),
    }


@pytest.mark.parametrize("name", ["clip", "bins", "mark", "unknown"])
def test_preprocessing_that_is_not_affine_is_limited_to_the_domain(name: str) -> None:
    step, column, value, reason = steps()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline, model = read(step, [column])
    record = {"age": 1, "hours": 20, "rooms": 1.5, "income": 50.0, column: value}
    with pytest.raises(OutsideLimits, match=reason) as refused:
        feta.audit(model, [record])
    assert refused.value.column == column
    other = "hours" if column == "income" else "income"
    moved = INSIDE | {other: 130}
    finding = feta.audit(model, [moved], replay=feta.runtime_of(pipeline, model)).findings[0]
    counterparts = pd.DataFrame([moved | {"age": age} for age in range(5)])
    decisions = pipeline.predict(counterparts).tolist()
    assert finding.status == ("fair" if len(set(decisions)) == 1 else "unfair")
    assert finding.decision == decisions[1]


def test_a_column_with_one_value_has_no_slope_beyond_its_limits() -> None:
    space = FeatureSpace((*PLAIN.attributes, Integer("office", 7, 7)))
    sklearn = pytest.importorskip("sklearn.pipeline")
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415 - an extra

    table = TABLE.assign(office=7)
    pipeline = sklearn.make_pipeline(StandardScaler(), LogisticRegression())
    pipeline.fit(table, TABLE["income"] > 60)
    model = Model(space, feta.read_sklearn(pipeline, space))
    with pytest.raises(OutsideLimits, match=r"'office' is outside .*known only within the limits"):
        feta.audit(model, [INSIDE | {"office": 8}])


def test_rounding_of_cancelled_terms_is_included_beyond_the_limits() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    from sklearn.pipeline import FeatureUnion  # noqa: PLC0415 - an extra

    two_copies = FeatureUnion([(name, preprocessing.StandardScaler()) for name in "ab"])
    pipeline, _ = read(two_copies, ["income"])
    last = pipeline[-1]
    last.coef_[0, 1] = -last.coef_[0, 0]  # the two copies of income cancel
    model = Model(PLAIN, feta.read_sklearn(pipeline, PLAIN))
    near, far = feta.audit(model, [INSIDE, INSIDE | {"income": 1e17}]).findings
    assert (near.runtime, far.runtime) == ("safe", "sensitive")


def test_a_model_file_stores_which_columns_are_affine_beyond_their_limits(tmp_path: Path) -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    _, model = read(preprocessing.MaxAbsScaler(), ["hours"])
    feta.save_model(model, tmp_path / "model.feta")
    loaded = feta.load_model(tmp_path / "model.feta")
    assert loaded.network.measured == model.network.measured
    assert model.network.measured is not None
    assert [span[0] for span in model.network.measured.spans] == [0, 1, 2, 3]
    feta.save_model(MODEL, tmp_path / "bare.feta")
    assert feta.load_model(tmp_path / "bare.feta").network.measured is None


def edited(path: Path, change: Any) -> None:  # noqa: ANN401 - a function of a dict
    """Change the description in a model file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header_fields = json.loads(header["__metadata__"]["feta-model"])
    change(header_fields)
    header["__metadata__"]["feta-model"] = json.dumps(header_fields)
    new = json.dumps(header).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + content[8 + length :])


def test_an_older_model_file_keeps_its_limits(tmp_path: Path) -> None:
    feta.save_model(MODEL, tmp_path / "model.feta")

    def older(header_fields: dict[str, Any]) -> None:
        del header_fields["network"]["measured"], header_fields["fingerprints"]["measured"]

    edited(tmp_path / "model.feta", older)
    model = feta.load_model(tmp_path / "model.feta")
    assert model.network.measured == Measured()
    with pytest.raises(OutsideLimits, match="known only within the limits"):
        feta.audit(model, [INSIDE | {"hours": 70}])


def test_a_model_file_whose_limits_were_edited_is_refused(tmp_path: Path) -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    _, model = read(preprocessing.MinMaxScaler(clip=True), ["hours"])
    feta.save_model(model, tmp_path / "model.feta")

    def loaded(header_fields: dict[str, Any]) -> None:
        header_fields["network"]["measured"] = None

    edited(tmp_path / "model.feta", loaded)
    with pytest.raises(NetworkError, match="does not match its fingerprint"):
        feta.load_model(tmp_path / "model.feta")


def test_strict_is_stored_only_if_it_is_set(tmp_path: Path) -> None:
    def space(**flags: bool) -> FeatureSpace:
        return FeatureSpace(
            (Categorical("s", ("a", "b"), sensitive=True), Real("n", 0, 9, **flags))
        )

    prints = {
        space(**flags).fingerprint
        for flags in ({}, {"strict": True}, {"missing": True}, {"strict": True, "missing": True})
    }
    assert len(prints) == 4
    # The fingerprint from before columns could be strict.
    assert space().fingerprint.startswith("2a3ed1599c79")
    strict = Model(space(strict=True), Network.from_layers([([[1.0, 2.0, 3.0]], [0.5])]))
    feta.save_model(strict, tmp_path / "strict.feta")
    assert feta.load_model(tmp_path / "strict.feta").space == strict.space


def test_a_schema_may_make_a_column_strict() -> None:
    text = """
[columns]
sex = { type = "category", values = ["f", "m"], sensitive = true }
hours = { type = "integer", min = 0, max = 60, strict = true }
rooms = { type = "levels", values = [1.0, 2.0], strict = true }
rate = { type = "number", min = 0, max = 1, step = 0.5, strict = true }
income = { type = "number", min = 0, max = 9 }
"""
    schema = parse_schema(text)
    strict = [getattr(attribute, "strict", False) for attribute in schema.space.attributes]
    assert strict == [False, True, True, True, False]
    parsed = parse_schema(format_schema(schema))
    assert parsed.space == schema.space


@pytest.mark.parametrize("kind", ["INT32", "INT64"])
def test_a_graph_that_casts_to_narrow_integers_keeps_its_limits(tmp_path: Path, kind: str) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kinds, array = onnx.helper, onnx.TensorProto, onnx.numpy_helper.from_array
    stored = [
        array(np.array(0), "first"),
        array(np.array([1]), "second"),
        array(np.array([[1.0], [-2.0], [0.5]], dtype=np.float32), "table"),
        array(np.array([[1.0, -2.0]], dtype=np.float32), "weight"),
    ]
    nodes = [
        helper.make_node("Gather", ["x", "first"], ["code"], axis=1),
        helper.make_node("Gather", ["x", "second"], ["number"], axis=1),
        helper.make_node("Cast", ["code"], ["whole"], to=getattr(kinds, kind)),
        helper.make_node("Gather", ["table", "whole"], ["embedded"]),
        helper.make_node("Concat", ["embedded", "number"], ["both"], axis=1),
        helper.make_node("Gemm", ["both", "weight"], ["y"], transB=1),
    ]
    entry = helper.make_tensor_value_info("x", kinds.FLOAT, ["rows", 2])
    end = helper.make_tensor_value_info("y", kinds.FLOAT, ["rows", 1])
    graph = helper.make_graph(nodes, "cast", [entry], [end], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    network = feta.read_onnx(tmp_path / "model.onnx")
    assert network.measured == (Measured() if kind == "INT32" else None)


@pytest.mark.parametrize(("cast", "narrow"), [("float", False), ("int", True), ("to", True)])
def test_a_module_that_casts_its_input_keeps_its_limits(cast: str, narrow: bool) -> None:
    torch = pytest.importorskip("torch")

    class Casting(torch.nn.Module):  # type: ignore[misc,name-defined]  # torch is an extra
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(3, 2)
            self.linear = torch.nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:  # noqa: ANN401 - a tensor
            code = x[:, 0].long()
            if cast == "int":
                code = x[:, 0].int()
            if cast == "to":
                code = x[:, 0].to(torch.int32)
            rest = x[:, 1:].float()
            return self.linear(torch.cat([self.embedding(code), rest], dim=1))

    network = feta.read_torch(Casting().eval(), columns=3)
    assert network.measured == (Measured() if narrow else None)


def test_scaling_a_column_twice_keeps_its_limits() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    _, model = read(preprocessing.MaxAbsScaler(), ["hours"])
    cancelled_magnitude = fold_scaling(model.network, [0.0, 5.0, 0.0, 0.0], [1.0, 2.0, 1.0, 1.0])
    assert cancelled_magnitude.measured is not None
    assert [span[0] for span in cancelled_magnitude.measured.spans] == [0, 2, 3]
