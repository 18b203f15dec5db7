"""The audited model is the model that runs: values and types come from the user's table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

import feta
import feta.readers.load
from feta.cli.app import app
from feta.estimators.fair_classifier import FairClassifier
from feta.scorer.network.network import Network

N_PEOPLE = 80


def run(*words: object) -> int:
    """Run a command in this process; a refusal is 2, as at the prompt."""
    try:
        return int(app([str(word) for word in words], prog_name="feta", standalone_mode=False) or 0)
    except feta.FetaError:
        return 2


def refusal(*words: object) -> str:
    with pytest.raises(feta.FetaError) as caught:
        app([str(word) for word in words], prog_name="feta", standalone_mode=False)
    return str(caught.value)


def people(column: list[object]) -> pd.DataFrame:
    """Make people whose group has the values of `column`, in turn."""
    rng = np.random.default_rng(3)
    group = np.empty(N_PEOPLE, dtype=object)
    group[:] = [column[index % len(column)] for index in range(N_PEOPLE)]
    return pd.DataFrame(
        {
            "group": pd.Series(group, dtype=object),
            "sex": rng.choice(["f", "m"], N_PEOPLE),
            "income": rng.normal(50, 9, N_PEOPLE).round(2),
        }
    )


def fitted(frame: pd.DataFrame, encoder: object = None) -> Pipeline:
    """Fit a pipeline whose decisions depend on the group, on the sex and on the income."""
    columns = ColumnTransformer(
        [
            ("group", encoder or OneHotEncoder(handle_unknown="ignore"), ["group"]),
            ("sex", OneHotEncoder(), ["sex"]),
            ("income", StandardScaler(), ["income"]),
        ]
    )
    texts = frame["group"].astype(str)
    bonus = 9 * (texts == texts.iloc[0]) + 6 * (frame["sex"] == "m")
    right = frame["income"] + bonus > 56
    return make_pipeline(columns, LogisticRegression()).fit(frame, right.astype(int))


def unfair_rows(pipeline: Pipeline, frame: pd.DataFrame, name: str) -> list[bool]:
    """Let the pipeline decide everybody with every value that the column holds."""
    answers = []
    for value in frame[name].drop_duplicates():
        moved = frame.copy()
        cells = pd.Series([value] * len(frame), index=frame.index, dtype=frame[name].dtype)
        moved[name] = cells
        answers.append(pipeline.predict(moved))
    return [len(set(column)) > 1 for column in np.stack(answers, axis=1).tolist()]


def audited(
    folder: Path, data: Path, pipeline: Pipeline, sensitive: str = "group"
) -> tuple[int, list[bool]]:
    """Run init and audit; return the exit code and who has a counterexample."""
    joblib.dump(pipeline, folder / "model.joblib")
    model, schema = folder / "model.joblib", folder / "schema.toml"
    assert (
        run("init", model, data, "--sensitive", sensitive, "--trust-pickle", "--out", schema) == 0
    )
    command = ("audit", model, "--schema", schema, "--data", data, "--trust-pickle")
    code = run(*command, "--out", folder / "audit")
    verdicts = pd.read_csv(folder / "audit" / "verdicts.csv")
    return code, (verdicts["verdict"] == "unfair").tolist()


ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    TargetEncoder(random_state=0),
]


@pytest.mark.filterwarnings("ignore:.*TargetEncoder.*:FutureWarning")
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("spelling", [("True", "False"), ("TRUE", "FALSE"), ("true", "FALSE")])
def test_booleans_are_booleans(tmp_path: Path, encoder: object, spelling: tuple[str, str]) -> None:
    people(list(spelling)).to_csv(tmp_path / "people.csv", index=False)
    frame = pd.read_csv(tmp_path / "people.csv")
    assert frame["group"].dtype == bool
    pipeline = fitted(frame, encoder)
    code, unfair = audited(tmp_path, tmp_path / "people.csv", pipeline)
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert any(unfair)
    assert code == 1


def test_decisions_use_booleans_that_are_not_sensitive(tmp_path: Path) -> None:
    people(["True", "False"]).to_csv(tmp_path / "people.csv", index=False)
    frame = pd.read_csv(tmp_path / "people.csv")
    pipeline = fitted(frame)
    _, unfair = audited(tmp_path, tmp_path / "people.csv", pipeline, sensitive="sex")
    assert unfair == unfair_rows(pipeline, frame, "sex")
    shared = frame.drop(columns=["sex"])
    shared.to_csv(tmp_path / "shared.csv", index=False)
    command = ("predict", tmp_path / "model.joblib", "--schema", tmp_path / "schema.toml")
    out = tmp_path / "decisions.csv"
    assert run(*command, "--data", tmp_path / "shared.csv", "--trust-pickle", "--out", out) == 0
    decisions = pd.read_csv(out)["decision"].to_numpy()
    votes = sum(pipeline.predict(shared.assign(sex=one)) for one in ("f", "m"))
    clear = votes != 1
    assert clear.sum() > N_PEOPLE / 2
    assert (decisions[clear] == votes[clear] / 2).all()


CONTENTS: dict[str, tuple[list[object], dict[str, Any]]] = {
    "codes": (["01", "02", "07"], {"dtype": {"group": str}}),
    "digits as text": (["1", "2", "3"], {"dtype": {"group": str}}),
    "NA as text": (["NA", "EU", "AS"], {"keep_default_na": False}),
    "empty text": (["", "x", "y"], {"keep_default_na": False}),
    "integers": ([1, 2, 5], {}),
    "floats": ([0.5, 1.5, 2.0], {}),
    "missing": (["x", None, "y"], {}),
    "whole floats, missing": ([1.0, None, 2.0], {}),
    "blanks": ([" White", "White", "Black"], {}),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_csv_cells_are_what_pandas_reads(tmp_path: Path, content: str) -> None:
    values, options = CONTENTS[content]
    people(values).to_csv(tmp_path / "people.csv", index=False)
    frame: pd.DataFrame = pd.read_csv(tmp_path / "people.csv", **options)
    pipeline = fitted(frame)
    _, unfair = audited(tmp_path, tmp_path / "people.csv", pipeline)
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert any(unfair)


@pytest.mark.parametrize("values", [["x", None, "y"], [True, None, False], [1, 2, 5]])
def test_parquet_cells_are_what_pandas_reads(tmp_path: Path, values: list[object]) -> None:
    pytest.importorskip("pyarrow")
    people(values).to_parquet(tmp_path / "people.parquet")
    frame = pd.read_parquet(tmp_path / "people.parquet")
    pipeline = fitted(frame)
    _, unfair = audited(tmp_path, tmp_path / "people.parquet", pipeline)
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert any(unfair)


def test_none_is_not_nan() -> None:
    frame = people(["x", None, "y"])
    pipeline = fitted(frame)
    assert None in pipeline[0].transformers_[0][1].categories_[0].tolist()
    space = feta.FeatureSpace.from_frame(frame, sensitive=["group"], missing=True)
    model = feta.Model(space, feta.read_sklearn(pipeline, space))
    found = feta.audit(model, frame, replay=feta.runtime_of(pipeline, model))
    unfair = [one.status == "unfair" for one in found.findings]
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert found.compared is not None
    assert found.compared.rows == N_PEOPLE


def test_two_kinds_of_missing_values_are_refused() -> None:
    frame = people(["x", None, float("nan"), "y"])
    pipeline = fitted(frame)
    space = feta.FeatureSpace.from_frame(frame, sensitive=["group"], missing=True)
    model = feta.Model(space, feta.read_sklearn(pipeline, space))
    with pytest.raises(feta.DomainError, match=r"'group' holds two kinds .*NaN and None.*fillna"):
        feta.audit(model, frame, replay=feta.runtime_of(pipeline, model))


def written(folder: Path, values: list[object], declared: str) -> tuple[object, ...]:
    """Write a model, a table and a schema with this line for the group; return the output."""
    people(values).to_csv(folder / "people.csv", index=False)
    joblib.dump(fitted(pd.read_csv(folder / "people.csv")), folder / "model.joblib")
    income = "income = { type = 'number', min = 0, max = 99 }"
    sex = "sex = { type = 'category', values = ['f', 'm'] }"
    text = f"[decision]\nthreshold = 0.5\n[columns]\n{declared}\n{sex}\n{income}\n"
    (folder / "schema.toml").write_text(text)
    where = ("--schema", folder / "schema.toml", "--data", folder / "people.csv")
    return (folder / "model.joblib", *where, "--trust-pickle")


def test_values_of_another_type_are_refused_with_the_line_to_write(tmp_path: Path) -> None:
    declared = "group = { type = 'category', values = ['1', '2', '3'], sensitive = true }"
    words = written(tmp_path, [1, 2, 3], declared)
    for command in ("audit", "doctor"):
        message = refusal(command, *words)
        assert "'group' are texts in the schema, but integers in the table" in message
        assert "without quotes" in message
    without_table = [word for word in words if word not in ("--data", tmp_path / "people.csv")]
    message = refusal("doctor", *without_table)
    assert "values of the sensitive column 'group' that the" in message
    assert "expected 1, 2, 3" in message
    assert 'group = { type = "integer", min = 1, max = 3, sensitive = true }' in message


def test_a_sensitive_value_that_the_encoder_never_saw_is_refused(tmp_path: Path) -> None:
    declared = "group = { type = 'category', values = ['x', 'y', 'z'], sensitive = true }"
    message = refusal("audit", *written(tmp_path, ["x", "y"], declared))
    assert "values of the sensitive column 'group' that the" in message
    assert "expected 'x', 'y'" in message
    assert 'write group = { type = "category", values = ["x", "y"], sensitive = true }' in message


def test_other_values_that_the_encoder_never_saw_are_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = "group = { type = 'category', values = ['x', 'y', 'z', 'w'] }"
    words = written(tmp_path, ["x", "y"], declared)
    schema = (tmp_path / "schema.toml").read_text()
    (tmp_path / "schema.toml").write_text(schema.replace("'m'] }", "'m'], sensitive = true }"))
    assert run("audit", *words) in (0, 1)
    said = " ".join(capsys.readouterr().err.split())
    assert "column 'group': the schema allows 2 values" in said
    assert "('z', 'w')" in said


def test_unlisted_texts_are_decided_with_other(tmp_path: Path) -> None:
    declared = "group = { type = 'category', values = ['x', 'y'], other = true }"
    words = written(tmp_path, ["x", "y"], declared)
    schema = (tmp_path / "schema.toml").read_text()
    (tmp_path / "schema.toml").write_text(schema.replace("'m'] }", "'m'], sensitive = true }"))
    table = pd.read_csv(tmp_path / "people.csv")
    table.loc[::3, "group"] = "somewhere else"
    table.to_csv(tmp_path / "people.csv", index=False)
    pipeline = joblib.load(tmp_path / "model.joblib")
    assert run("audit", *words, "--out", tmp_path / "audit") in (0, 1)
    verdicts = pd.read_csv(tmp_path / "audit" / "verdicts.csv")
    unfair = (verdicts["verdict"] == "unfair").tolist()
    assert unfair == unfair_rows(pipeline, table, "sex")
    assert any(unfair)


def test_the_report_names_the_function_and_the_threshold(tmp_path: Path) -> None:
    people([True, False]).to_csv(tmp_path / "people.csv", index=False)
    pipeline = fitted(pd.read_csv(tmp_path / "people.csv"))
    audited(tmp_path, tmp_path / "people.csv", pipeline)
    schema = tmp_path / "schema.toml"
    schema.write_text(schema.read_text().replace("threshold = 0.5", "threshold = 0.6"))
    words = ("--schema", schema, "--data", tmp_path / "people.csv", "--trust-pickle")
    run("audit", tmp_path / "model.joblib", *words, "--out", tmp_path / "other")
    content = json.loads((tmp_path / "other" / "audit.json").read_text())
    assert content["compared"]["function"] == "the pipeline's own predict_proba, compared with 0.6"
    assert content["compared"]["rows"] == N_PEOPLE
    assert content["summary"]["pairs_not_replayed"] == 0
    assert "predict_proba, compared with 0.6" in (tmp_path / "other" / "report.html").read_text()


def swapped(network: Network, one: int, other: int) -> Network:
    slopes = network.first.slopes.copy()
    slopes[:, [one, other]] = slopes[:, [other, one]]
    return replace(network, first=replace(network.first, slopes=slopes))


def scaled(network: Network, column: int, factor: float) -> Network:
    slopes = network.first.slopes.copy()
    slopes[:, column] *= factor
    return replace(network, first=replace(network.first, slopes=slopes))


def shifted(network: Network, by: float) -> Network:
    return replace(network, first=replace(network.first, bias=network.first.bias + by))


# The columns are: group False, group True, sex f, sex m, income.
PLANTS = {
    "two values of the sensitive column swapped": lambda network: swapped(network, 0, 1),
    "two values of another column swapped": lambda network: swapped(network, 2, 3),
    "a column scaled twice": lambda network: scaled(network, 4, 1 / 9),
    "a column barely off": lambda network: scaled(network, 4, 1 + 1e-6),
    "a boolean dropped": lambda network: scaled(scaled(network, 0, 0.0), 1, 0.0),
    "one value dropped": lambda network: scaled(network, 1, 0.0),
    "a category dropped": lambda network: scaled(scaled(network, 2, 0.0), 3, 0.0),
    "a sign turned": lambda network: scaled(network, 4, -1.0),
    "the intercept forgotten": lambda network: shifted(network, 0.25),
    "another column's slope": lambda network: swapped(network, 3, 4),
}


@pytest.fixture(scope="module")
def plantable(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    folder = tmp_path_factory.mktemp("plants")
    declared = "group = { type = 'category', values = [false, true], sensitive = true }"
    return written(folder, ["True", "False"], declared)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_misreading_is_stopped(
    plant: str, plantable: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = feta.read_sklearn

    def misread(*words: object, **options: object) -> Network:
        return PLANTS[plant](read(*words, **options))  # type: ignore[arg-type]  # passed through

    assert run("audit", *plantable) in (0, 1)
    monkeypatch.setattr(feta.readers.load, "read_sklearn", misread)
    monkeypatch.setattr("feta.readers.check_reading.compare_drawn", lambda loaded: _nothing(loaded))
    assert "differs from FETA's reading" in refusal("audit", *plantable)
    assert "differs from FETA's reading" in refusal("predict", *plantable)
    assert "row " in refusal("export", *plantable, "--out", tmp_path / "model.feta")
    assert run("doctor", *plantable) == 2


def _nothing(loaded: feta.readers.load.LoadedModel) -> object:
    """Take the people drawn from the schema out of the comparison: the table alone must do."""
    from feta.readers.comparison import Comparison  # noqa: PLC0415 - of this test only

    return Comparison(loaded.runtime_name)


def test_a_feta_file_keeps_how_the_table_is_read(tmp_path: Path) -> None:
    frame = people(["01", "02", " 07"])
    frame.to_csv(tmp_path / "people.csv", index=False)
    stripped = frame.assign(group=frame["group"].str.strip())
    pipeline = fitted(stripped)
    joblib.dump(pipeline, tmp_path / "model.joblib")
    where = ("--trust-pickle", "--out", tmp_path / "schema.toml")
    model, data = tmp_path / "model.joblib", tmp_path / "people.csv"
    assert run("init", model, data, "--sensitive", "group", "--strip", *where) == 0
    schema = ("--schema", tmp_path / "schema.toml", "--trust-pickle")
    assert run("export", model, *schema, "--data", data, "--out", tmp_path / "model.feta") == 0
    assert run("audit", tmp_path / "model.feta", "--data", data, "--out", tmp_path / "audit") == 1
    verdicts = pd.read_csv(tmp_path / "audit" / "verdicts.csv")
    unfair = (verdicts["verdict"] == "unfair").tolist()
    assert unfair == unfair_rows(pipeline, stripped, "group")
    options = json.loads((tmp_path / "audit" / "audit.json").read_text())["model"]["table"]
    assert options == {"dtype": {"group": "str"}, "strip": True}


def test_texts_that_differ_in_blanks_only_are_not_other_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = people(["White", "Black"])
    joblib.dump(fitted(frame), tmp_path / "model.joblib")
    people(["White", " White", "Black"]).to_csv(tmp_path / "people.csv", index=False)
    words = ("init", tmp_path / "model.joblib", tmp_path / "people.csv", "--trust-pickle")
    schema = tmp_path / "schema.toml"
    message = refusal(*words, "--sensitive", "group", "--out", schema)
    assert "' White'" in message
    assert "only in spaces: run this again with --strip" in message
    assert run(*words, "--sensitive", "sex", "--out", schema) == 0
    assert "other = true" not in schema.read_text()
    assert "--strip" in " ".join(capsys.readouterr().err.split())


def test_a_column_without_any_value_is_read(tmp_path: Path) -> None:
    frame = people(["x", None, "y"])
    frame.to_csv(tmp_path / "people.csv", index=False)
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    pipeline = fitted(pd.read_csv(tmp_path / "people.csv"), filled)
    audited(tmp_path, tmp_path / "people.csv", pipeline, sensitive="sex")
    frame.assign(group=None).head(3).to_csv(tmp_path / "empty.csv", index=False)
    given = ("--schema", tmp_path / "schema.toml", "--data", tmp_path / "empty.csv")
    out = tmp_path / "decisions.csv"
    model = tmp_path / "model.joblib"
    assert run("predict", model, *given, "--trust-pickle", "--out", out) == 0
    empty = pd.read_csv(tmp_path / "empty.csv")
    votes = sum(pipeline.predict(empty.assign(sex=one)) for one in ("f", "m"))
    decisions = pd.read_csv(out)["decision"].to_numpy()
    assert [one for one, vote in zip(decisions, votes, strict=True) if vote != 1] == [
        vote / 2 for vote in votes if vote != 1
    ]


def test_words_for_booleans_are_read_as_the_encoder_knows_them(tmp_path: Path) -> None:
    people(["yes", "no"]).to_csv(tmp_path / "people.csv", index=False)
    options: dict[str, Any] = {"true_values": ["yes"], "false_values": ["no"]}
    frame: pd.DataFrame = pd.read_csv(tmp_path / "people.csv", **options)
    assert frame["group"].dtype == bool
    pipeline = fitted(frame)
    _, unfair = audited(tmp_path, tmp_path / "people.csv", pipeline)
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert any(unfair)


def codes(table: pd.DataFrame) -> pd.DataFrame:
    """Return the codes of categories, which depend on their order."""
    return pd.DataFrame({name: table[name].cat.codes for name in table.columns})


def test_the_order_of_categories_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = people(["low", "mid", "high"])
    frame["group"] = pd.Categorical(frame["group"], ["low", "mid", "high"], ordered=True)
    frame.to_parquet(tmp_path / "people.parquet")
    columns = ColumnTransformer(
        [
            ("group", FunctionTransformer(codes), ["group"]),
            ("sex", OneHotEncoder(), ["sex"]),
            ("income", StandardScaler(), ["income"]),
        ]
    )
    right = frame["income"] + 9 * frame["group"].cat.codes + 6 * (frame["sex"] == "m") > 60
    pipeline = make_pipeline(columns, LogisticRegression()).fit(frame, right.astype(int))
    _, unfair = audited(tmp_path, tmp_path / "people.parquet", pipeline)
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert any(unfair)
    wrapped = FairClassifier(FrozenEstimator(pipeline), sensitive=["sex"])
    decided = wrapped.fit(frame, right.astype(int)).predict(frame.drop(columns=["sex"]))
    votes = sum(pipeline.predict(frame.assign(sex=one)) for one in ("f", "m"))
    clear = votes != 1
    assert (decided[clear] == votes[clear] / 2).all()


def refused_other(values: tuple[str, ...], encoder: object, column: list[object]) -> str:
    frame = people(column)
    space = feta.FeatureSpace(
        (
            feta.Categorical("group", values, other=True),
            feta.Categorical("sex", ("f", "m"), sensitive=True),
            feta.Real("income", 0, 99),
        )
    )
    with pytest.raises(feta.NetworkError) as caught:
        feta.read_sklearn(fitted(frame, encoder), space)
    return str(caught.value)


def test_other_values_must_be_unknown_to_the_encoder() -> None:
    ignoring = OneHotEncoder(handle_unknown="ignore")
    message = refused_other(("x",), ignoring, ["x", "y", "z"])
    assert "the model's encoder knows: got no 'y', 'z'; add them to values" in message
    assert "add it to values" in refused_other(("x", "y"), ignoring, ["x", "y", "(other)"])
    marked = make_pipeline(SimpleImputer(missing_values="?", strategy="most_frequent"), ignoring)
    assert "may distinguish texts" in refused_other(("x", "y"), marked, ["x", "y", "?"])


def test_numbers_that_are_read_as_texts_are_refused(tmp_path: Path) -> None:
    declared = "group = { type = 'integer', min = 1, max = 3, sensitive = true }"
    words = written(tmp_path, [1, 2, 3], declared)
    schema = tmp_path / "schema.toml"
    schema.write_text(f"[table]\ndtype = {{ group = 'str' }}\n{schema.read_text()}")
    message = refusal("audit", *words)
    assert (
        "column 'group' has different types in table and schema: got texts in the table" in message
    )
    assert "declare it as a category" in message


def test_a_model_that_fails_on_the_table_is_refused_in_words(tmp_path: Path) -> None:
    people(["x", "None", "y"]).to_csv(tmp_path / "people.csv", index=False)
    frame = pd.read_csv(tmp_path / "people.csv", keep_default_na=False)
    pipeline = fitted(frame, OneHotEncoder())
    audited(tmp_path, tmp_path / "people.csv", pipeline)
    schema = tmp_path / "schema.toml"
    lines = schema.read_text().splitlines()
    kept = [line for line in lines if "na_values" not in line and "keep_default_na" not in line]
    schema.write_text("\n".join(kept) + "\n")
    given = ("--schema", schema, "--data", tmp_path / "people.csv", "--trust-pickle")
    message = refusal("audit", tmp_path / "model.joblib", *given)
    assert "the pipeline's own predict fails on rows of the table" in message
    assert "keep_default_na" in message
