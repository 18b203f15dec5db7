"""Models in pickles, skops and torch files, with all commands."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

import feta
from feta.estimators.fair_classifier import FairClassifier
from tests.cli.commands import rows_of

RNG = np.random.default_rng(3)
X = pd.DataFrame(
    {
        "id": [f"p{n}" for n in range(80)],
        "age": RNG.integers(18, 60, 80),
        "sex": RNG.choice(["f", "m"], 80),
        "town": RNG.choice(["Bonn", "Ulm"], 80),
        "income": RNG.uniform(0, 90, 80).round(1),
        "note": "x",
    }
)
X.loc[3, "income"] = np.nan
X["town"] = np.where(X["sex"] == "m", "Ulm", X["town"])  # Bonn reveals the sex
X["loan"] = np.where(X["age"] + X["income"].fillna(40) + 20 * (X["sex"] == "m") > 85, "yes", "no")


def pipeline(*steps: object, texts: tuple[str, ...] = ("sex",)) -> object:
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), *steps)
    columns = make_column_transformer((numbers, ["age", "income"]), (OneHotEncoder(), list(texts)))
    return make_pipeline(columns, LogisticRegression()).fit(X, X["loan"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    X.to_csv("people.csv", index=False)
    joblib.dump(pipeline(), "model.joblib")
    return tmp_path


Run = Callable[..., tuple[int, str, str]]
TRUSTED = ("model.joblib", "--trust-pickle")


def write_schema(feta_: Run, model: str = "model.joblib", sensitive: str = "age,sex") -> None:
    code, _, _ = feta_("init", model, "people.csv", "--sensitive", sensitive, "--trust-pickle")
    assert code == 0


def test_a_pickle_is_opened_only_if_trusted(folder: Path, feta_: Run) -> None:
    code, _, err = feta_("init", "model.joblib", "people.csv", "--sensitive", "age,sex")
    assert code == 2
    reason = (
        "feta: model.joblib: opening this type of file could run any code hidden in it, so "
        "FETA does not; if you wrote it, add --trust-pickle, or save the model "
    )
    assert err.splitlines() == [f"{reason}as .skops (skops.io.dump)"]  # there is no schema yet
    code, _, err = feta_("doctor", "model.joblib", "--schema", "schema.toml")
    assert code == 2
    assert err.splitlines() == [
        f"{reason}once from Python:",
        '    import feta, joblib; schema = feta.read_schema("schema.toml")',
        "    model = joblib.load('model.joblib')",
        '    schema.check_classes(getattr(model, "classes_", ()))',
        "    network = feta.read_sklearn(model, schema.space)",
        '    feta.save_model(schema.model(network), "model.feta", table=schema.table)',
    ]
    write_schema(feta_)
    exec("\n".join(line.strip() for line in err.splitlines()[1:]), {})  # the script works
    assert (folder / "model.feta").exists()
    code, out, _ = feta_("audit", "model.feta", "--data", "people.csv")
    assert code == 1
    assert "have a counterpart with a different decision" in out


def test_a_pipeline_is_audited_from_init_to_pairs(folder: Path, feta_: Run) -> None:
    code, _, err = feta_(
        "init", *TRUSTED[:1], "people.csv", "--sensitive", "age,sex", "--trust-pickle"
    )
    assert code == 0
    assert "left out because the pipeline does not read them: id, town, note, loan" in err
    schema = (folder / "schema.toml").read_text()
    comment = (
        "# A guess: high scores, the model's second class, are favorable.\n"
        '# If the first class is, exchange the two names and add favors = "below".\n'
    )
    assert f'{comment}favorable = "yes"' in schema
    assert "[decision] must name the favorable outcome: 'yes' for high scores is a guess" in err
    income = next(line for line in schema.splitlines() if line.startswith("income"))
    assert "missing = true" in income
    code, out, _ = feta_("doctor", *TRUSTED, "--schema", "schema.toml", "--data", "people.csv")
    assert code == 0
    assert "model.joblib can be audited." in out
    age = next(line for line in schema.splitlines() if line.startswith("age"))
    real = schema.replace(age, age.replace('"integer"', '"number"'))
    (folder / "real.toml").write_text(real)
    code, err, _ = feta_("doctor", *TRUSTED, "--schema", "real.toml")
    assert code == 2
    assert "but not audited: declare its real-valued sensitive attributes as integer" in err
    assert (
        "80 rows of the table compared with the pipeline's own predict: the same decisions" in out
    )
    assert float(re.findall(r"outputs differ by (\S+) at most", out)[0]) < 1e-12
    ages = X["age"].max() - X["age"].min() + 1
    assert f"age x sex; {2 * ages} counterparts per person; engine" in out
    code, out, _ = feta_(
        "audit",
        *TRUSTED,
        "--schema",
        "schema.toml",
        "--data",
        "people.csv",
        "--label",
        "loan",
        "--id",
        "id",
        "--out",
        "out",
    )
    assert code == 1
    assert "Every pair was replayed in the pipeline's own predict, with the same result." in out
    assert {row["replayed"] for row in rows_of(folder / "out" / "pairs.csv")} == {"yes"}
    content = json.loads((folder / "out" / "audit.json").read_text())
    assert content["model"]["reading"] == "proved"
    code, out, _ = feta_(
        "predict", *TRUSTED, "--schema", "schema.toml", "--data", "people.csv", "--id", "id"
    )
    assert code == 0
    assert out.splitlines()[4].startswith('4,"p3",')  # the person whose income is missing


def test_doctor_reports_unread_columns_and_proxies(folder: Path, feta_: Run) -> None:
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["town"]))
    joblib.dump(make_pipeline(columns, LogisticRegression()).fit(X, X["loan"]), "blind.joblib")
    write_schema(feta_, "blind.joblib", "sex")
    code, out, _ = feta_(
        "doctor",
        "blind.joblib",
        "--trust-pickle",
        "--schema",
        "schema.toml",
        "--data",
        "people.csv",
    )
    assert code == 0
    assert (
        "Never read, though sensitive: sex; so every decision is fair in this sense, "
        "trivially. Measure proxies instead" in out
    )
    assert "Possible proxies, Cramér's V from 0 to 1: town predicts sex (V = 0." in out
    code, out, _ = feta_(
        "audit", "blind.joblib", "--trust-pickle", "--schema", "schema.toml", "--data", "people.csv"
    )
    assert code == 0
    assert (
        "The model does not read the sensitive column sex: no decision can depend on it directly"
        in out
    )
    code, out, _ = feta_(
        "doctor", "blind.joblib", "--trust-pickle", "--schema", "schema.toml", "--json"
    )
    assert json.loads(out)["sensitive_never_read"] == ["sex"]
    assert folder.exists()


def test_sampled_preprocessing_is_reported_everywhere(folder: Path, feta_: Run) -> None:
    joblib.dump(
        pipeline(FunctionTransformer(np.clip, kw_args={"a_min": -99.0, "a_max": 99.0})),
        "model.joblib",
    )
    write_schema(feta_)
    _, out, _ = feta_("doctor", *TRUSTED, "--schema", "schema.toml")
    assert "Preprocessing: sampled, not proved." in out
    _, out, _ = feta_(
        "audit", *TRUSTED, "--schema", "schema.toml", "--data", "people.csv", "--out", "out"
    )
    assert "Sampled, not proved: the code of a preprocessing step is unknown" in out
    assert json.loads((folder / "out" / "audit.json").read_text())["model"]["reading"] == "sampled"


def test_a_pipeline_that_cannot_be_read_is_counted_or_refused_with_its_columns(
    folder: Path, feta_: Run
) -> None:
    write_schema(feta_)
    joblib.dump(pipeline(Normalizer()), "model.joblib")
    obstacle = (
        "model.joblib with schema.toml: the step 'normalizer' (Normalizer) divides each row by its "
        "norm: got an interaction of 'age' and 'income'"
    )
    arguments = [*TRUSTED, "--schema", "schema.toml"]
    code, _, err = feta_("doctor", *arguments, "--method", "exact")
    assert code == 2
    assert obstacle in err
    code, out, _ = feta_("doctor", *arguments)
    assert code == 0
    assert f"model.joblib is counted, not proved: {obstacle}" in out
    assert "Counted: fair means that" in out
    assert folder.exists()


def test_a_fair_wrapper_is_refused_with_a_script_for_the_model_inside(
    folder: Path, feta_: Run
) -> None:
    columns = X[["age", "sex", "income"]]
    fair = FairClassifier(FrozenEstimator(pipeline()), sensitive=["age", "sex"], least=1)
    fair.fit(columns)
    joblib.dump(fair, "model.joblib")
    err = ""
    for command in ("audit", "predict", "doctor"):
        code, _, err = feta_(command, *TRUSTED, "--data", "people.csv")
        assert code == 2
        assert "a FairClassifier is already fair; call its predict" in err
    script = [line.strip() for line in err.splitlines() if line.startswith("    ")]
    exec("\n".join(script), {})
    code, out, _ = feta_("audit", "inside.feta", "--data", "people.csv")
    assert code == 1
    assert "of 80 people (52.5%) have a counterpart" in out
    assert folder.exists()


def test_a_table_passed_as_model_is_refused(folder: Path, feta_: Run) -> None:
    code, _, err = feta_("audit", "people.csv", "--data", "people.csv")
    assert code == 2
    assert "people.csv is a table of people; expected a model as the first argument" in err
    assert folder.exists()


def test_the_outcomes_are_shown_with_the_classes_that_they_are(folder: Path, feta_: Run) -> None:
    write_schema(feta_)
    schema = folder / "schema.toml"
    renamed = schema.read_text().replace('= "yes"', '= "refused"').replace('= "no"', '= "granted"')
    schema.write_text(renamed)
    code, _, err = feta_("doctor", *TRUSTED, "--schema", "schema.toml")
    assert code == 2
    assert "the model's classes are 'no' and 'yes', and high scores mean 'yes'" in err
    schema.write_text(renamed.replace("[columns]", 'favors = "below"\n[columns]'))
    words = "In the model's own classes, 'refused' is 'no' and 'granted' is 'yes'."
    code, out, _ = feta_("doctor", *TRUSTED, "--schema", "schema.toml")
    assert (code, words in out) == (0, True)
    files = ("--schema", "schema.toml", "--data", "people.csv", "--out", "audit")
    assert feta_("audit", *TRUSTED, *files)[0] == 1
    assert words in unescape((folder / "audit" / "report.html").read_text())


def test_the_favorable_class_must_match_the_favored_side(folder: Path, feta_: Run) -> None:
    write_schema(feta_)
    schema = folder / "schema.toml"
    schema.write_text(
        schema.read_text().replace(
            'favorable = "yes"\nunfavorable = "no"', 'favorable = "no"\nunfavorable = "yes"'
        )
    )
    code, _, err = feta_("doctor", *TRUSTED, "--schema", "schema.toml")
    assert code == 2
    assert (
        "schema.toml: [decision]: high scores of the model mean its second class, 'yes', so "
        'favorable = "no" needs favors = "below"' in err
    )
    schema.write_text(schema.read_text().replace("[columns]", 'favors = "below"\n[columns]'))
    code, out, _ = feta_("doctor", *TRUSTED, "--schema", "schema.toml")
    assert code == 0
    assert "the same decisions" in out
    schema.write_text(
        schema.read_text().replace(
            'type = "integer",', 'type = "integer", center = 30.0, scale = 9.0,'
        )
    )
    code, _, err = feta_("doctor", *TRUSTED, "--schema", "schema.toml")
    assert "the pipeline scales its columns itself; remove center and scale from the schema" in err


def test_a_skops_model_is_opened_unless_it_contains_unknown_types(folder: Path, feta_: Run) -> None:
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    write_schema(feta_)
    skops_io.dump(pipeline(), "model.skops")
    code, out, _ = feta_("audit", "model.skops", "--schema", "schema.toml", "--data", "people.csv")
    assert code == 1
    assert "replayed in the pipeline's own predict" in out
    skops_io.dump(pipeline(FunctionTransformer(unknown_function)), "model.skops")
    code, _, err = feta_("audit", "model.skops", "--schema", "schema.toml", "--data", "people.csv")
    assert code == 2
    assert (
        "holds types that skops does not trust: got tests.cli.test_sources.unknown_function" in err
    )
    (folder / "model.skops").write_bytes(b"PK\x03\x04")
    code, _, err = feta_("audit", "model.skops", "--schema", "schema.toml", "--data", "people.csv")
    assert "model.skops: the file cannot be read" in err


def unknown_function(table: object) -> object:
    return table


def test_a_torch_module_in_a_pickle_is_read_and_replayed(folder: Path, feta_: Run) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    nn = torch.nn
    torch.manual_seed(0)
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).eval()
    torch.save(module, "model.pt")
    text = (
        '[decision]\nscore = 0.0\n[columns]\nage = { type = "integer", min = 18, '
        "max = 60, sensitive = true, center = 30.0, scale = 9.0 }\nsex = { type = "
        '"category", values = ["f", "m"], sensitive = true }\n'
    )
    (folder / "schema.toml").write_text(text)
    code, out, _ = feta_("doctor", "model.pt", "--trust-pickle", "--schema", "schema.toml")
    assert code == 0
    assert "drawn from the schema compared with torch: the same decisions" in out
    assert float(re.findall(r"outputs differ by (\S+) at most", out)[0]) < 1e-5
    code, _, err = feta_("doctor", "model.pt", "--schema", "schema.toml")
    assert "network = feta.read_torch(torch.load('model.pt', weights_only=False))" in err
    torch.save(module.state_dict(), "model.pt")
    code, _, err = feta_("doctor", "model.pt", "--trust-pickle", "--schema", "schema.toml")
    assert code == 2
    assert "a state_dict has no layers: save the whole module" in err


def test_an_exported_model_has_the_same_scores(folder: Path, feta_: Run) -> None:
    write_schema(feta_)
    code, out, _ = feta_("export", *TRUSTED, "--schema", "schema.toml", "--out", "raw.onnx")
    assert code == 0
    assert "0: age, an integer from" in out
    schema = feta.read_schema("schema.toml")
    people = schema.space.encode(X)
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = onnxruntime.InferenceSession("raw.onnx")
    kind = np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32
    probabilities = session.run(None, {"people": people.astype(kind)})[0].ravel()
    scores = pipeline().decision_function(X)  # type: ignore[attr-defined]
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-scores)), rtol=1e-9)
    assert "It returns probabilities." in out
    code, _, _ = feta_("export", *TRUSTED, "--schema", "schema.toml", "--out", "raw.feta")
    assert code == 0
    assert feta.load_model("raw.feta").network(people) == pytest.approx(scores[:, None])
    code, _, err = feta_("export", *TRUSTED, "--schema", "schema.toml", "--out", "raw.pkl")
    assert "unknown file type: got '.pkl'; expected .onnx or .feta" in err
    assert folder.exists()


def test_init_writes_a_tolerance_for_a_regression_pipeline(folder: Path, feta_: Run) -> None:
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["sex"]))
    joblib.dump(make_pipeline(columns, LinearRegression()).fit(X, X["age"] * 2.0), "model.joblib")
    write_schema(feta_)
    assert "tolerance = 0.0" in (folder / "schema.toml").read_text()
    code, out, _ = feta_("doctor", *TRUSTED, "--schema", "schema.toml", "--data", "people.csv")
    assert code == 0
    assert "the same decisions" in out


def test_a_bad_row_is_named_by_id_and_line(folder: Path, feta_: Run) -> None:
    write_schema(feta_)
    lines = (folder / "people.csv").read_text().splitlines()
    lines.insert(3, "")  # later rows have other line numbers
    age = lines[5].split(",")
    lines[5] = ",".join([age[0], "33.5", *age[2:]])
    (folder / "people.csv").write_text("\n".join(lines))
    options = ("--schema", "schema.toml", "--data", "people.csv", "--id", "id")
    code, _, err = feta_("audit", *TRUSTED, *options)
    assert code == 2
    assert "people.csv, row 4 (line 6, id 'p3'): 'age' is invalid" in err
    assert "got '33.5'; expected an integer from 18 to" in err
    assert "; round it, or declare 'age' as type = \"number\" with a step" in err
    town = lines[7].replace(",f,", ",x,").replace(",m,", ",x,")
    (folder / "people.csv").write_text("\n".join([*lines[:5], *lines[6:7], town, *lines[8:]]))
    code, _, err = feta_("audit", *TRUSTED, *options)
    assert "'sex' is invalid: got 'x'; expected one of 'f', 'm'" in err


def test_skipped_rows_are_undecided_and_counted_once(folder: Path, feta_: Run) -> None:
    write_schema(feta_)
    lines = (folder / "people.csv").read_text().splitlines()
    for row in range(1, 12):
        cells = lines[row].split(",")
        lines[row] = ",".join([*cells[:4], "much", *cells[5:]])
    (folder / "people.csv").write_text("\n".join(lines))
    options = ("--schema", "schema.toml", "--data", "people.csv", "--id", "id")
    code, _, err = feta_("predict", *TRUSTED, *options)
    assert code == 2
    assert "row 1 (id 'p0'): 'income' is invalid: got" in err
    code, out, err = feta_("predict", *TRUSTED, *options, "--skip-bad-rows")
    assert code == 3
    assert out.count('"not read"') == 11
    assert err.count("not read: people.csv, row") == 5
    assert "and 6 more rows were not read" in err
    kind = "'income': not a number: 'much' (11 rows, the first is row 1)"
    assert f"rows not read: {kind}" in err


def test_decimal_commas_are_reported_with_a_remedy(folder: Path, feta_: Run) -> None:
    X.assign(income=[f"{n},5" for n in range(80)]).to_csv("people.csv", index=False, sep=";")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 1)
    torch.save(module, "model.pt")
    code, _, err = feta_(
        "init",
        "model.pt",
        "people.csv",
        "--sensitive",
        "age",
        "--leave-out",
        "id,town,note,loan,sex",
        "--trust-pickle",
    )
    assert code == 0
    assert (
        "'income' became a category because it contains texts such as '0,5': write numbers with a "
        "decimal point and without thousands separators, and run this again" in err
    )
    assert folder.exists()


def shown(text: str, start: str) -> list[str]:
    """Return the lines that begin with these words."""
    return [line for line in text.splitlines() if line.startswith(start)]


def test_an_estimator_is_read_by_the_names_it_was_fitted_on(folder: Path, feta_: Run) -> None:
    numbers = X[["income", "age"]].fillna(40)
    by_age = LogisticRegression().fit(numbers, X["loan"])
    by_age.coef_, by_age.intercept_ = np.array([[0.0, 1.0]]), np.array([-40.0])
    joblib.dump(by_age, "model.joblib")
    pd.DataFrame({"age": X["age"], "note": X["note"], "income": numbers["income"]}).to_csv(
        "two.csv", index=False
    )
    code, _, err = feta_("init", *TRUSTED, "two.csv", "--sensitive", "age", "--out", "s.toml")
    assert code == 0
    assert "left out because the estimator does not read them: note" in err
    code, _, err = feta_("init", *TRUSTED, "two.csv", "--sensitive", "note", "--out", "n.toml")
    assert code == 2
    assert "the estimator does not read 'note', so no decision can depend on it" in err
    assert [
        attribute.name for attribute in feta.read_schema(folder / "s.toml").space.attributes
    ] == [
        "income",
        "age",
    ]
    code, stdout, _ = feta_("audit", *TRUSTED, "--data", "two.csv", "--schema", "s.toml")
    assert code == 1
    assert "Unfair" in stdout
    lines = (folder / "s.toml").read_text().splitlines(keepends=True)
    index = next(n for n, line in enumerate(lines) if line.startswith("income"))
    (folder / "s.toml").write_text(
        "".join([*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]])
    )
    arguments = ("audit", *TRUSTED, "--data", "two.csv", "--schema", "s.toml")
    code, _, err = feta_(*arguments, "--method", "exact")
    assert code == 2
    assert "'age' is in the wrong position: got column 0 of the space; expected column 1" in err
    code, counted, err = feta_(*arguments)  # its own predict reads the columns by name
    assert code == 1
    assert "counted" in counted + err
    people = "The model's decisions"
    assert shown(counted, people) == shown(stdout, people)


def test_a_regressor_has_no_probability(folder: Path, feta_: Run) -> None:
    numbers = X[["age", "income"]].fillna(40)
    joblib.dump(LinearRegression().fit(numbers, numbers["income"] + 0.5), "model.joblib")
    numbers.to_csv("two.csv", index=False)
    assert feta_("init", *TRUSTED, "two.csv", "--sensitive", "age", "--out", "s.toml")[0] == 0
    schema = (folder / "s.toml").read_text()
    (folder / "s.toml").write_text(re.sub("tolerance = .*", "threshold = 0.5", schema))
    code, _, err = feta_("audit", *TRUSTED, "--data", "two.csv", "--schema", "s.toml")
    assert code == 2
    assert "a regressor gives no probability; write tolerance" in err
    (folder / "s.toml").write_text(re.sub("tolerance = .*", "score = 40.25", schema))
    code, stdout, err = feta_("audit", *TRUSTED, "--data", "two.csv", "--schema", "s.toml")
    assert code in {0, 1}, err
    assert "Doubtful" not in stdout
