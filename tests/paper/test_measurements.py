"""Tests of `results.json`."""

import json
from pathlib import Path

import pytest

from feta.errors import SchemaError
from feta_paper.measurements import Measurements

MEASURED = Measurements("german", "German credit", 1, True, 0, 1000, 456, {"nn_b.accuracy": [70.5]})


def test_written_measurements_are_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    MEASURED.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["format"], content["version"]) == ("feta-reproduction", 1)
    assert Measurements.read(path) == MEASURED
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize(("field", "value"), [("format", "feta-audit"), ("version", 2)])
def test_a_file_of_another_format_or_version_is_refused(
    tmp_path: Path, field: str, value: object
) -> None:
    path = tmp_path / "results.json"
    MEASURED.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {field: value}), encoding="utf-8")
    with pytest.raises(SchemaError, match="expected 'feta-reproduction', version 1; name the"):
        Measurements.read(path)
