"""The model in a worker: the one of the first process, or a refusal."""

import pickle
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import feta
from feta import Model, Network
from feta.distributed.part_model import ModelFiles, SameModel, libraries_of
from feta.errors import EngineError, ModelChanged
from feta.readers.check_reading import RowSample
from feta.readers.load_function import ModelOrigin
from feta.readers.runtime import Runtime
from feta.readers.source import SourceOptions

pytest.importorskip("pyarrow")

SPACE = feta.FeatureSpace((feta.Integer("age", 18, 40, sensitive=True),))
MODEL = Model(SPACE, Network.from_layers([([[1.0]], [-30.0])]))


@pytest.fixture
def same(tmp_path: Path) -> SameModel:
    feta.save_model(MODEL, tmp_path / "m.feta")
    (tmp_path / "people.csv").write_text("age\n20\n")
    origin = ModelOrigin(tmp_path / "m.feta")
    files = ModelFiles(origin, None, SourceOptions(), None, tmp_path / "people.csv", {})
    libraries = libraries_of(files.load())
    return SameModel(files, MODEL.fingerprint, libraries, RowSample.of(1))


def test_an_open_model_is_not_sent_to_other_workers(same: SameModel) -> None:
    assert same.loaded is same.loaded
    received = pickle.loads(pickle.dumps(same))
    assert "loaded" not in vars(received)
    assert received.loaded.model.fingerprint == MODEL.fingerprint


def test_another_model_is_refused(same: SameModel, tmp_path: Path) -> None:
    feta.save_model(Model(SPACE, Network.from_layers([([[1.0]], [-31.0])])), tmp_path / "m.feta")
    with pytest.raises(ModelChanged, match="the model is another one in a worker"):
        _ = same.loaded


def test_another_version_is_refused(same: SameModel) -> None:
    for name in ("feta-fair", "numpy"):
        other = replace(same, libraries={name: "0.0.1"})
        with pytest.raises(
            EngineError, match=rf"another version of {name}: got .*; expected 0.0.1"
        ):
            _ = other.loaded


def test_versions_are_stamped_if_the_users_program_runs(same: SameModel) -> None:
    assert same.libraries == {"feta-fair": version("feta-fair")}

    def no_answers(*_: object) -> object:
        raise NotImplementedError

    runtime = Runtime("of the user", no_answers, no_answers)  # type: ignore[arg-type]
    found = libraries_of(replace(same.loaded, runtime=runtime))
    assert found["numpy"] == version("numpy")
    assert found["feta-fair"] == version("feta-fair")
