import json
from pathlib import Path

import pytest

from feta.errors import SchemaError
from feta_paper.measurements import Measurements

MEASURED = Measurements("german", "German credit", 1, True, 0, 1000, 456, {"nn_b.accuracy": [70.5]})


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    MEASURED.write(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    assert (told["format"], told["version"]) == ("feta-reproduction", 1)
    assert Measurements.read(path) == MEASURED
    assert [one.name for one in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize(("field", "value"), [("format", "feta-audit"), ("version", 2)])
def test_another_kind_of_file_is_refused(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "results.json"
    MEASURED.write(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(told | {field: value}), encoding="utf-8")
    with pytest.raises(SchemaError, match="must be a feta-reproduction file of version 1"):
        Measurements.read(path)
