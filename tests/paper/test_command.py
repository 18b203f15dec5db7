import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from feta.errors import SchemaError
from feta_paper import command as reproduce
from feta_paper.fold import people_of
from feta_paper.protocol import protocol_of
from feta_paper.reproduce import ReproduceOptions, run_reproduce
from tests.cli.test_commands import run
from tests.extras import needs
from tests.paper.tiny import timeless

COMMAND = [sys.executable, "-m", "feta", "reproduce", "german", "--quick", "--folds", "1"]
PATIENCE = 300.0  # on a busy machine


def interrupted(folder: Path, jobs: int, seen: str, by: signal.Signals) -> tuple[int, str]:
    """Start a run, and end it when a file of this name is seen."""
    process = subprocess.Popen(
        [*COMMAND, "--jobs", str(jobs), "--out", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job is started with the signal ignored, and so would be its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    try:
        until = time.monotonic() + PATIENCE
        while not list(folder.glob(f"models/{seen}")):
            assert process.poll() is None, "it ended before it could be interrupted"
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(by)
        _, told = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, told


@needs("torch")
def test_killed_twice_and_started_again_it_ends_with_the_same_results(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert interrupted(part, 2, "*.feta", signal.SIGKILL)[0] == -signal.SIGKILL
    code, told = interrupted(part, 1, "default-0.feta", signal.SIGINT)
    assert code == 130
    assert "what is done is kept in" in told
    assert "go on with: feta reproduce german --quick --folds 1" in told
    assert not (part / "results.json").exists()
    for folder in (part, whole):
        command = [*COMMAND, "--jobs", "1", "--out", str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "CE-Fair training" in done.stdout
    assert timeless(part / "results.json") == timeless(whole / "results.json")
    assert (part / "reproduction.md").read_text("utf-8").startswith("## German credit\n")
    assert not list(part.glob("models/*.training"))


@needs("torch")
def test_a_data_set_that_is_not_at_hand_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETA_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    out = tmp_path / "out"
    done = run("reproduce", "ipums", "--quick", "--out", str(out))
    assert done.returncode == 2
    assert "IPUMS Adult" in done.stderr
    assert "ipums/adult_reconstruction.csv" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (ReproduceOptions("german", 7, False, 0, 1, None), "--folds must be from 1 to 5, got 7"),
        (ReproduceOptions("german", 0, False, 0, 1, None), "--folds must be from 1 to 5, got 0"),
        (
            ReproduceOptions("compas", None, False, 0, 1, None),
            "a data set to reproduce must be one of",
        ),
        (
            ReproduceOptions("german", None, True, 0, 1, Path(__file__)),
            "--out is a file; expected a folder",
        ),
    ],
)
def test_wrong_options_are_refused_in_words(options: ReproduceOptions, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        run_reproduce(options)


@needs("torch")
def test_a_folder_goes_on_with_the_same_rows_or_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "carry_out", stopped)
    options = ReproduceOptions("german", 1, True, 0, 1, tmp_path)
    left = tmp_path / "models" / "nn_b-0-64.training"
    left.parent.mkdir()
    for kept in (False, True):  # of another run whose journal is gone; then of this one
        left.touch()
        with pytest.raises(KeyboardInterrupt):
            run_reproduce(options)
        assert left.exists() == kept
    with pytest.raises(SchemaError, match='the kind was "quick", and is "full" now'):
        run_reproduce(replace(options, quick=False))
    rows = people_of("german", protocol_of("german", quick=True).rows, 0)
    others = replace(rows, labels=~rows.labels)
    monkeypatch.setattr(reproduce, "people_of", lambda *_: others)
    with pytest.raises(SchemaError, match="the checksum of the rows was"):
        run_reproduce(options)
