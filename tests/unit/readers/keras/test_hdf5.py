"""HDF5 parsed by another process, whose failures do not affect this one."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from feta import NetworkError, read_keras
from feta.readers.keras import hdf5
from feta.readers.keras.hdf5 import Hdf5Program, parse_hdf5

h5py = pytest.importorskip("h5py")

CONFIG = {
    "class_name": "Sequential",
    "config": {
        "layers": [
            {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, 2]}},
            {"class_name": "Dense", "config": {"name": "dense", "activation": "sigmoid"}},
        ]
    },
}


def save_model(folder: Path) -> Path:
    """Write a complete model as Keras 2 did."""
    path = folder / "model.h5"
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(CONFIG)
        file.attrs["keras_version"] = "2.9.0"
        weights = file.create_group("model_weights")
        weights.attrs["layer_names"] = ["dense"]
        weights.create_group("dense").attrs["weight_names"] = ["kernel", "bias"]
        weights["dense/kernel"] = np.array([[1.0], [2.0]], dtype=np.float32)
        weights["dense/bias"] = np.array([0.5], dtype=">f4")
    return path


def replace_program(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """Replace the program's function that parses a file."""
    script = folder / "program.py"
    script.write_text(
        f"import importlib.util, os, signal, sys\n"
        f"spec = importlib.util.spec_from_file_location('program', {str(hdf5.PROGRAM)!r})\n"
        "program = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(program)\n"
        f"def _answer(kind, content, limits):\n    {answer}\n"
        "program._answer = _answer\n"
        "program.main()\n"
    )
    monkeypatch.setattr(hdf5, "PROGRAM", script)


def test_a_file_is_read_without_h5py_in_this_process(tmp_path: Path) -> None:
    path = save_model(tmp_path)
    script = (
        f"import sys, feta; network = feta.read_keras({str(path)!r}); assert "
        f"'h5py' not in sys.modules; print(network([[3.0, 4.0]])[0, 0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert float(done.stdout) == 11.5


def write_score(path: Path, out: Path) -> None:
    out.write_text(str(read_keras(path)(np.array([[3.0, 4.0]]))[0, 0]))


def test_a_file_is_read_in_a_daemonic_process(tmp_path: Path) -> None:
    arguments = save_model(tmp_path), tmp_path / "score"
    process = multiprocessing.get_context("spawn").Process(
        target=write_score, args=arguments, daemon=True
    )
    process.start()
    process.join(timeout=300)  # only against hanging
    assert process.exitcode == 0
    assert float(arguments[1].read_text()) == 11.5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            r"model\.h5: the file is damaged: the HDF5 library crashed on it \(exit "
            r"status -11\); save it again",
        ),
        ("os._exit(3)", r"crashed on it \(exit status 3\)"),
        ("os.killpg(0, signal.SIGKILL)", r"crashed on it \(exit status -9\)"),
        ("open('/dev/null')", "is damaged: the HDF5 library crashed"),
        ("[0] * 2**31", "is damaged: the HDF5 library crashed"),
        ("return b''", "is damaged: the HDF5 library crashed"),
        ("return b'x' * 100", "parts that do not fit together"),
        (
            "sys.stdout.buffer.write(b'\\xff' * 100)\n    sys.stdout.flush()\n    os._exit(0)",
            "is damaged",
        ),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")
def test_a_crash_or_an_invalid_answer_of_the_program_becomes_a_message(
    answer: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_program(tmp_path, monkeypatch, answer)
    with pytest.raises(NetworkError, match=message):
        read_keras(save_model(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_parsing_that_does_not_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_program(tmp_path, monkeypatch, "while True: pass")
    with (
        Hdf5Program(processor_seconds=1) as program,
        pytest.raises(
            NetworkError, match=r"takes longer to parse than allowed; expected at most \d+ s"
        ),
    ):
        program.parse(b"", whole=True)


@pytest.mark.skipif(sys.platform == "win32", reason="forks of POSIX")
def test_the_program_parses_the_next_file_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = save_model(tmp_path).read_bytes()
    replace_program(
        tmp_path,
        monkeypatch,
        "return program._parse_file(kind, content, 999) if content[:1] == b'\\x89' else os.abort()",
    )
    with Hdf5Program() as program:
        with pytest.raises(NetworkError, match="crashed"):
            program.parse(b"damaged", whole=True)
        (group,) = program.parse(content, whole=True).groups
    assert (group.folder, group.name) == ("dense", "dense")
    assert [array.ravel().tolist() for array in group.arrays] == [[1.0, 2.0], [0.5]]


def encode_answer(content: object, data: bytes = b"") -> bytes:
    header = json.dumps(content).encode()
    return len(header).to_bytes(8, "little") + header + data


MODEL = {"config": "{}", "version": "3"}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff" * 8,
        encode_answer([]),
        encode_answer(7),
        encode_answer({}),
        encode_answer({"error": "no such error"}),
        encode_answer({"error": ["crash"]}),
        encode_answer(MODEL),
        encode_answer({"config": 1, "version": "3", "groups": []}),
        encode_answer({"config": "{}", "version": None, "groups": []}),
        encode_answer(MODEL | {"groups": 3}),
        encode_answer(MODEL | {"groups": [["a"]]}),
        encode_answer(MODEL | {"groups": [[1, "a", []]]}),
        encode_answer(MODEL | {"groups": [["a", 1, []]]}),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f4", [2]]]]]}, b"1234"),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f4", [1]]]]]}, b"12345"),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f4", [-1]]]]]}, b"1234"),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f4", [True]]]]]}, b"1234"),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f4", [10**30, 0]]]]]}),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f4", [0] * 100]]]]}),
        encode_answer(MODEL | {"groups": [["a", "a", [["|O8", [1]]]]]}, b"12345678"),
        encode_answer(MODEL | {"groups": [["a", "a", [["<f1", [1]]]]]}, b"1"),
        encode_answer(MODEL | {"groups": [["a", "a", [["<M8", [1]]]]]}, b"12345678"),
        encode_answer(MODEL | {"groups": [["a", "a", [[["<f4"], [1]]]]]}, b"1234"),
    ],
)
def test_an_inconsistent_answer_is_refused(answer: bytes) -> None:
    with pytest.raises(NetworkError, match="parts that do not fit together"):
        hdf5._parse_answer(answer, whole=True)


def test_a_python_without_a_path_or_without_h5py_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = save_model(tmp_path).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "")
        with pytest.raises(NetworkError, match=r"sys\.executable is empty"):
            parse_hdf5(content, whole=True)
    bare = [entry for entry in sys.path if "site-packages" not in entry]
    monkeypatch.setattr(sys, "path", bare)
    monkeypatch.setattr(hdf5, "_h5py_is_installed", lambda: True)
    with pytest.raises(NetworkError, match="which cannot import h5py"):
        parse_hdf5(content, whole=True)
