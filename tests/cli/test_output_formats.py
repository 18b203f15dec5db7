"""The report and the output formats of `feta audit`."""

from xml.etree import ElementTree as ET

import pytest

from tests.bad_files import Folder
from tests.cli.commands import run
from tests.extras import needs


@needs("onnxruntime")
def test_report_contains_the_command_that_repeats_it(folder: Folder) -> None:
    run(*folder.audit("--seconds", "5"))
    page = (folder.path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Unfair: 3 of 4 people (75.0%) have a counterpart with a different decision" in page
    command = "feta audit model.onnx --data data.csv --schema schema.toml --seconds 5.0 --out out"
    assert command in page
    assert "Replayed in onnxruntime" in page


@pytest.mark.parametrize(
    ("name", "first"), [("md", "# Fairness"), ("junit", "<?xml"), ("json", "{")]
)
def test_formats_are_pure_on_standard_output(folder: Folder, name: str, first: str) -> None:
    done = run(*folder.audit("--format", name))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(first)
    if name == "junit":
        suite = ET.fromstring(done.stdout)
        assert suite.attrib | {"name": ""} == {
            "name": "",
            "tests": "4",
            "failures": "2",
            "errors": "0",
        }


def test_undecided_people_are_errors_in_junit(folder: Folder) -> None:
    done = run(*folder.audit("--format", "junit", "--seconds", "0", "--engine", "exhaustive"))
    suite = ET.fromstring(done.stdout)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
