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
    """Run a command in this process; return its exit code."""
    try:
        return int(app([str(word) for word in words], prog_name="feta", standalone_mode=False) or 0)
    except feta.FetaError:
        return 2


def error_message(*words: object) -> str:
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
    """Return whose decision the pipeline changes with some value of the column."""
    decisions = []
    for value in frame[name].drop_duplicates():
        moved = frame.copy()
        cells = pd.Series([value] * len(frame), index=frame.index, dtype=frame[name].dtype)
        moved[name] = cells
        decisions.append(pipeline.predict(moved))
    return [len(set(row)) > 1 for row in np.stack(decisions, axis=1).tolist()]


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
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: type(encoder).__name__)
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
    votes = sum(pipeline.predict(shared.assign(sex=sex)) for sex in ("f", "m"))
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
    result = feta.audit(model, frame, replay=feta.runtime_of(pipeline, model))
    unfair = [finding.status == "unfair" for finding in result.findings]
    assert unfair == unfair_rows(pipeline, frame, "group")
    assert result.compared is not None
    assert result.compared.rows == N_PEOPLE


def test_two_kinds_of_missing_values_are_rejected() -> None:
    frame = people(["x", None, float("nan"), "y"])
    pipeline = fitted(frame)
    space = feta.FeatureSpace.from_frame(frame, sensitive=["group"], missing=True)
    model = feta.Model(space, feta.read_sklearn(pipeline, space))
    with pytest.raises(feta.DomainError, match=r"'group' has two kinds .*got NaN and None.*fillna"):
        feta.audit(model, frame, replay=feta.runtime_of(pipeline, model))


def written(folder: Path, values: list[object], declared: str) -> tuple[object, ...]:
    """Write a model, a table and a schema with this group; return the arguments of commands."""
    people(values).to_csv(folder / "people.csv", index=False)
    joblib.dump(fitted(pd.read_csv(folder / "people.csv")), folder / "model.joblib")
    income = "income = { type = 'number', min = 0, max = 99 }"
    sex = "sex = { type = 'category', values = ['f', 'm'] }"
    text = f"[decision]\nthreshold = 0.5\n[columns]\n{declared}\n{sex}\n{income}\n"
    (folder / "schema.toml").write_text(text)
    where = ("--schema", folder / "schema.toml", "--data", folder / "people.csv")
    return (folder / "model.joblib", *where, "--trust-pickle")


def test_values_of_another_type_are_rejected_with_the_correct_line(tmp_path: Path) -> None:
    declared = "group = { type = 'category', values = ['1', '2', '3'], sensitive = true }"
    words = written(tmp_path, [1, 2, 3], declared)
    for command in ("audit", "doctor"):
        message = error_message(command, *words)
        assert "'group' has different types in schema and table: got texts in the schema" in message
        assert "; expected integers, as in the table; " in message
        assert message.rstrip().endswith(
            "write the values as numbers, without quotes"
        )  # the encoder's
    without_table = [word for word in words if word not in ("--data", tmp_path / "people.csv")]
    message = error_message("doctor", *without_table)
    assert "values of the sensitive column 'group' that the" in message
    assert "expected 1, 2, 3" in message
    assert 'group = { type = "integer", min = 1, max = 3, sensitive = true }' in message


def test_a_sensitive_value_unknown_to_the_encoder_is_rejected(tmp_path: Path) -> None:
    declared = "group = { type = 'category', values = ['x', 'y', 'z'], sensitive = true }"
    message = error_message("audit", *written(tmp_path, ["x", "y"], declared))
    assert "values of the sensitive column 'group' that the" in message
    assert "expected 'x', 'y'" in message
    assert 'write group = { type = "category", values = ["x", "y"], sensitive = true }' in message


def test_other_values_unknown_to_the_encoder_get_a_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = "group = { type = 'category', values = ['x', 'y', 'z', 'w'] }"
    words = written(tmp_path, ["x", "y"], declared)
    schema = (tmp_path / "schema.toml").read_text()
    (tmp_path / "schema.toml").write_text(schema.replace("'m'] }", "'m'], sensitive = true }"))
    assert run("audit", *words) in (0, 1)
    notices = " ".join(capsys.readouterr().err.split())
    assert "column 'group': the schema allows 2 values" in notices
    assert "('z', 'w')" in notices


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


def swapped(network: Network, first: int, second: int) -> Network:
    slopes = network.first.slopes.copy()
    slopes[:, [first, second]] = slopes[:, [second, first]]
    return replace(network, first=replace(network.first, slopes=slopes))


def scaled(network: Network, column: int, factor: float) -> Network:
    slopes = network.first.slopes.copy()
    slopes[:, column] *= factor
    return replace(network, first=replace(network.first, slopes=slopes))


def shifted(network: Network, by: float) -> Network:
    return replace(network, first=replace(network.first, bias=network.first.bias + by))


# The columns are: group False, group True, sex f, sex m, income.
MISREADINGS = {
    "two values of the sensitive column swapped": lambda network: swapped(network, 0, 1),
    "two values of another column swapped": lambda network: swapped(network, 2, 3),
    "a column scaled twice": lambda network: scaled(network, 4, 1 / 9),
    "a column scaled slightly wrong": lambda network: scaled(network, 4, 1 + 1e-6),
    "a boolean dropped": lambda network: scaled(scaled(network, 0, 0.0), 1, 0.0),
    "one value dropped": lambda network: scaled(network, 1, 0.0),
    "a category dropped": lambda network: scaled(scaled(network, 2, 0.0), 3, 0.0),
    "a wrong sign": lambda network: scaled(network, 4, -1.0),
    "a wrong intercept": lambda network: shifted(network, 0.25),
    "another column's slope": lambda network: swapped(network, 3, 4),
}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    folder = tmp_path_factory.mktemp("misreadings")
    declared = "group = { type = 'category', values = [false, true], sensitive = true }"
    return written(folder, ["True", "False"], declared)


@pytest.mark.parametrize("misreading", MISREADINGS)
def test_a_misreading_is_detected(
    misreading: str, arguments: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = feta.read_sklearn

    def misread(*words: object, **options: object) -> Network:
        return MISREADINGS[misreading](read(*words, **options))  # type: ignore[arg-type]  # passed through

    assert run("audit", *arguments) in (0, 1)
    monkeypatch.setattr(feta.readers.read_model, "read_sklearn", misread)
    monkeypatch.setattr(
        "feta.readers.check_reading.compare_drawn", lambda loaded: _empty_comparison(loaded)
    )
    assert "differs from FETA's reading" in error_message("audit", *arguments)
    assert "differs from FETA's reading" in error_message("predict", *arguments)
    assert "row " in error_message("export", *arguments, "--out", tmp_path / "model.feta")
    assert run("doctor", *arguments) == 2


def _empty_comparison(loaded: feta.readers.load.LoadedModel) -> object:
    """Replace the comparison on sampled people: the table alone must detect the misreading."""
    from feta.readers.comparison import Comparison  # noqa: PLC0415 - only here

    return Comparison(loaded.runtime_name)


def test_a_feta_file_stores_the_table_options(tmp_path: Path) -> None:
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


def test_texts_that_differ_only_in_blanks_are_not_other_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = people(["White", "Black"])
    joblib.dump(fitted(frame), tmp_path / "model.joblib")
    people(["White", " White", "Black"]).to_csv(tmp_path / "people.csv", index=False)
    words = ("init", tmp_path / "model.joblib", tmp_path / "people.csv", "--trust-pickle")
    schema = tmp_path / "schema.toml"
    message = error_message(*words, "--sensitive", "group", "--out", schema)
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
    files = ("--schema", tmp_path / "schema.toml", "--data", tmp_path / "empty.csv")
    out = tmp_path / "decisions.csv"
    model = tmp_path / "model.joblib"
    assert run("predict", model, *files, "--trust-pickle", "--out", out) == 0
    empty = pd.read_csv(tmp_path / "empty.csv")
    votes = sum(pipeline.predict(empty.assign(sex=sex)) for sex in ("f", "m"))
    decisions = pd.read_csv(out)["decision"].to_numpy()
    assert [decision for decision, vote in zip(decisions, votes, strict=True) if vote != 1] == [
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
    frozen = FrozenEstimator(pipeline)
    wrapped = FairClassifier(frozen, sensitive=["sex"], vote="majority", weights=None, level=None)
    fair = wrapped.fit(frame, right.astype(int)).predict(frame.drop(columns=["sex"]))
    votes = sum(pipeline.predict(frame.assign(sex=sex)) for sex in ("f", "m"))
    clear = votes != 1
    assert (fair[clear] == votes[clear] / 2).all()


def message_about_other(values: tuple[str, ...], encoder: object, column: list[object]) -> str:
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
    message = message_about_other(("x",), ignoring, ["x", "y", "z"])
    assert "the model's encoder knows: got no 'y', 'z'; add them to values" in message
    assert "add it to values" in message_about_other(("x", "y"), ignoring, ["x", "y", "(other)"])
    marked = make_pipeline(SimpleImputer(missing_values="?", strategy="most_frequent"), ignoring)
    assert "may distinguish texts" in message_about_other(("x", "y"), marked, ["x", "y", "?"])


def test_numbers_that_are_read_as_texts_are_rejected(tmp_path: Path) -> None:
    declared = "group = { type = 'integer', min = 1, max = 3, sensitive = true }"
    words = written(tmp_path, [1, 2, 3], declared)
    schema = tmp_path / "schema.toml"
    schema.write_text(f"[table]\ndtype = {{ group = 'str' }}\n{schema.read_text()}")
    message = error_message("audit", *words)
    assert (
        "column 'group' has different types in table and schema: got texts in the table" in message
    )
    assert "declare it as a category" in message


def test_the_message_about_a_model_that_fails_on_the_table(tmp_path: Path) -> None:
    people(["x", "None", "y"]).to_csv(tmp_path / "people.csv", index=False)
    frame = pd.read_csv(tmp_path / "people.csv", keep_default_na=False)
    pipeline = fitted(frame, OneHotEncoder())
    audited(tmp_path, tmp_path / "people.csv", pipeline)
    schema = tmp_path / "schema.toml"
    lines = schema.read_text().splitlines()
    others = [line for line in lines if "na_values" not in line and "keep_default_na" not in line]
    schema.write_text("\n".join(others) + "\n")
    files = ("--schema", schema, "--data", tmp_path / "people.csv", "--trust-pickle")
    message = error_message("audit", tmp_path / "model.joblib", *files)
    assert "the pipeline's own predict fails on rows of the table" in message
    assert "keep_default_na" in message


def test_a_sensitive_value_unknown_to_the_encoder_of_a_counted_model_is_rejected(
    tmp_path: Path,
) -> None:
    declared = "group = { type = 'category', values = ['x', 'y', 'z'], sensitive = true }"
    arguments = written(tmp_path, ["x", "y"], declared)
    message = error_message("audit", *arguments, "--method", "counted")
    assert "that the model's encoder never saw in training: got 'z'; expected 'x', 'y'" in message
