"""Bad files of every kind that a user may pass.

Each registered function spoils one thing in a folder of good files and returns the command to run.
A test and the campaign `bad_files` run them all.
"""

import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

SCHEMA = """[decision]
favorable = "approved"
unfavorable = "refused"
threshold = 0.5

[columns]
age = { type = "integer", min = 18, max = 90, sensitive = true, center = 50.0, scale = 20.0 }
sex = { type = "category", values = ["female", "male"], sensitive = true }
income = { type = "number", min = 0, max = 100 }
"""
ROWS = ["30,female,50", "41,male,12.5", "18,female,0", "90,male,99"]
CSV = "age,sex,income\n" + "\n".join(ROWS) + "\n"

WEIGHTS = {
    "W1": np.array([[0.5, -0.25, 0.25, 0.02], [-0.5, 0.5, 0.0, -0.01], [0.1, 0.2, 0.3, 0.4]]),
    "b1": np.array([-0.5, 0.25, 0.1]),
    "W2": np.array([[1.0, -1.0, 0.02]]),
    "b2": np.array([-0.6]),
}
NODES = (
    helper.make_node("Gemm", ["x", "W1", "b1"], ["h1"], transB=1),
    helper.make_node("Relu", ["h1"], ["a1"]),
    helper.make_node("Gemm", ["a1", "W2", "b2"], ["h2"], transB=1),
    helper.make_node("Sigmoid", ["h2"], ["y"]),
)


def graph_model(
    nodes: Sequence[onnx.NodeProto],
    arrays: Sequence[onnx.TensorProto],
    *,
    width: int = 4,
    rows: int | str = "rows",
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Build a graph without checking it."""
    input_ = helper.make_tensor_value_info("x", kind, [rows, width])
    values = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "net", [input_], values, list(arrays))
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def stored(name: str, array: Any, kind: type = np.float32) -> onnx.TensorProto:  # noqa: ANN401 - numbers
    """Store an array in a graph."""
    return numpy_helper.from_array(np.asarray(array, kind), name)


def good_model(**replaced: np.ndarray) -> onnx.ModelProto:
    """Build Gemm, Relu, Gemm, Sigmoid, optionally with other weights."""
    arrays = [stored(name, array) for name, array in (WEIGHTS | replaced).items()]
    return graph_model(NODES, arrays)


@dataclass(frozen=True)
class Folder:
    """A folder with a good model, schema and table."""

    path: Path

    @classmethod
    def filled(cls, path: Path) -> "Folder":
        """Write the good files into a folder."""
        path.mkdir(parents=True, exist_ok=True)
        (path / "model.onnx").write_bytes(good_model().SerializeToString())
        (path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
        (path / "data.csv").write_text(CSV, encoding="utf-8")
        return cls(path)

    def audit(self, *options: str, model: str = "model.onnx", data: str = "data.csv") -> list[str]:
        """Return the command that audits these files."""
        schema = [] if model.endswith(".feta") else ["--schema", str(self.path / "schema.toml")]
        files = [str(self.path / model), *schema, "--data", str(self.path / data)]
        return ["audit", *files, "--out", str(self.path / "out"), *options]

    def table(self, content: str | bytes, name: str = "data.csv") -> list[str]:
        """Audit another table."""
        raw = content.encode() if isinstance(content, str) else content
        (self.path / name).write_bytes(raw)
        return self.audit(data=name)

    def row(self, row: str) -> list[str]:
        """Audit a table whose third row is this one."""
        return self.table("\n".join(["age,sex,income", *ROWS[:2], row, *ROWS[2:]]) + "\n")

    def schema(self, old: str, new: str) -> list[str]:
        """Audit with a changed schema."""
        assert old in SCHEMA
        (self.path / "schema.toml").write_text(SCHEMA.replace(old, new), encoding="utf-8")
        return self.audit()

    def model(self, model: onnx.ModelProto | bytes, *options: str) -> list[str]:
        """Audit another ONNX model."""
        raw = model if isinstance(model, bytes) else model.SerializeToString()
        (self.path / "model.onnx").write_bytes(raw)
        return self.audit(*options)

    def nodes(self, *nodes: onnx.NodeProto, **options: Any) -> list[str]:  # noqa: ANN401 - passed on
        """Audit a graph with other operators."""
        arrays = [stored(name, array) for name, array in WEIGHTS.items()]
        return self.model(graph_model(nodes, arrays, **options))

    def file(self, name: str, content: bytes, *options: str) -> list[str]:
        """Audit a model file of another kind."""
        (self.path / name).write_bytes(content)
        return self.audit(*options, model=name)


@dataclass(frozen=True)
class BadFile:
    """A kind of bad file: the function that makes it, and parts of the expected message."""

    name: str
    says: tuple[str, ...]
    make: Callable[[Folder], list[str]] = field(repr=False)


KINDS: list[BadFile] = []
Maker = Callable[[Folder], list[str]]


def bad(*parts: str) -> Callable[[Maker], Maker]:
    """Register a function that makes a bad file of the kind with its name."""

    def add(make: Maker) -> Maker:
        KINDS.append(BadFile(make.__name__, parts, make))
        return make

    return add


def _add_row_kinds() -> None:
    cells = {
        "unseen_category": ("30,femal,50", "'sex' is invalid", "did you mean 'female'?"),
        "empty_category": ("30,,50", "'sex' is invalid", "got an empty cell"),
        "nan_cell": (
            "nan,female,50",
            "'age' is invalid: got 'nan'; expected an integer from 18 to 90",
        ),
        "infinite_cell": (
            "30,female,inf",
            "'income' is invalid: got 'inf'; expected a number from 0 to 100",
        ),
        "huge_number": (
            "30,female,1e400",
            "'income' is invalid: got '1e400'; expected a number from 0 to 100",
        ),
        "text_in_a_number": ("old,female,50", "'age' is invalid", "got 'old'"),
        "empty_number": (",female,50", "'age' is invalid", "got an empty cell"),
        "fractional_integer": ("30.5,female,50", "'age' is invalid", "got '30.5'"),
        "below_the_domain": ("17,female,50", "'age' is invalid", "got '17'"),
        "above_all_limits": (
            "30,female,1e39",
            "'income' is outside the schema's limits: got 1",
            "because",
        ),
        "underscored_number": ("3_0,female,50", "'age' is invalid", "got '3_0'"),
        "decimal_comma": ('30,female,"12,5"', "'income' is invalid", "with a decimal point"),
        "long_unseen_category": (f"30,{'x' * 5000},50", "'sex' is invalid", "characters)"),
        "escape_in_a_cell": ("30,\x1b[31mred,50", "'sex' is invalid", r"got '\x1b[31mred'"),
        "too_many_cells": (
            "30,female,50,1",
            "wrong number of cells: got 4; expected 3, like the header",
        ),
        "too_few_cells": ("30,female", "wrong number of cells: got 2; expected 3, like the header"),
    }
    for name, (row, *says) in cells.items():
        make = partial(Folder.row, row=row)
        KINDS.append(BadFile(name, ("data.csv, row 3: ", *says), make))


_add_row_kinds()

# Tables.


@bad("data.csv: the table must have the column 'income'; it has 'age', 'sex'")
def missing_column(folder: Folder) -> list[str]:
    return folder.table("age,sex\n30,female\n")


@bad("data.csv: ", "the column 'income'", "did you mean 'incom'?")
def misspelled_column(folder: Folder) -> list[str]:
    return folder.table("age,sex,incom\n30,female,1\n")


@bad("data.csv: repeated column: got 'age' twice")
def duplicate_column(folder: Folder) -> list[str]:
    return folder.table("age,sex,income,age\n30,female,50,30\n")


@bad("data.csv: no header: got an empty file; expected a header line")
def empty_table(folder: Folder) -> list[str]:
    return folder.table("")


@bad("data.csv: no header: got an empty file; expected a header line")
def blank_table(folder: Folder) -> list[str]:
    return folder.table("\n\n\n")


@bad("data.csv: no rows: expected at least one row below the header")
def header_only(folder: Folder) -> list[str]:
    return folder.table("age,sex,income\n")


@bad("data.csv, row 1003: the table is not CSV in UTF-8")
def not_utf_8(folder: Folder) -> list[str]:
    rows = (ROWS[0] + "\n").encode() * 1002
    return folder.table(b"age,sex,income\n" + rows + "30,män,1\n".encode("latin-1") + rows)


@bad("data.csv, the header: the table is not CSV in UTF-8")
def utf_16(folder: Folder) -> list[str]:
    return folder.table(CSV.encode("utf-16"))


@bad("data.csv, row 5: the table is not CSV in UTF-8 without NUL bytes")
def nul_bytes(folder: Folder) -> list[str]:
    return folder.table(CSV + "30,fe\0male,50\n")


@bad("data.csv, the header: the table is not CSV in UTF-8 without NUL bytes")
def nul_bytes_in_the_header(folder: Folder) -> list[str]:
    return folder.table("a\0ge,sex,income\n30,female,50\n")


@bad("data.csv, row 5: a cell is too long; expected at most 1048576 characters")
def field_of_20_mb(folder: Folder) -> list[str]:
    lines = "x\n" * 10_000_000
    return folder.table(f'{CSV}30,"{lines}",50\n')


@bad("data.csv, row 5: the table is not valid CSV: a line is too long; expected fewer than")
def line_of_20_mb(folder: Folder) -> list[str]:
    return folder.table(f"{CSV}30,{'x' * 20_000_000},50\n")


@bad("data.csv, row 4: the table is not valid CSV: ", "look for a quote that is not closed")
def open_quote(folder: Folder) -> list[str]:
    return folder.table(CSV.replace("90,male", '90,"male'))


@bad("data.csv, row 2: 'age' is invalid", "got 'x'")
def bad_cell_among_100_000_columns(folder: Folder) -> list[str]:
    n_columns = 100_000
    names = ",".join(f"c{n}" for n in range(n_columns))
    rest = "," + ",".join("0" * n_columns) + "\n"
    return folder.table(f"age,sex,income,{names}\n30,female,50{rest}x,female,50{rest}")


@bad("data.csv: the table must have the column 'age'; it has 'c0', 'c1'")
def missing_among_100_000_columns(folder: Folder) -> list[str]:
    names = ",".join(f"c{n}" for n in range(100_000))
    return folder.table(names + "\n")


@bad("nowhere.csv: there is no such file")
def no_table(folder: Folder) -> list[str]:
    return folder.audit(data="nowhere.csv")


@bad("null: got a folder or a device; expected a regular file")
def device_as_table(folder: Folder) -> list[str]:
    return folder.audit(data="/dev/null")


@bad("data.parquet: the file is not a complete Parquet file")
def damaged_parquet(folder: Folder) -> list[str]:
    return folder.table(b"PAR1" + bytes(100) + b"PAR1", "data.parquet")


@bad("data.csv, the header: the table is not CSV in UTF-8")
def spreadsheet_as_csv(folder: Folder) -> list[str]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>" * 50)
    return folder.table(content.getvalue())


@bad("data.csv, row 3: invalid label 'label': got 'maybe'; expected 'approved', 'refused', 1 or 0")
def unknown_label(folder: Folder) -> list[str]:
    labels = ("approved", "0", "maybe", "1")
    rows = [f"{row},{label}" for row, label in zip(ROWS, labels, strict=True)]
    table = folder.table("age,sex,income,label\n" + "\n".join(rows) + "\n")
    return [*table, "--label", "label"]


@bad(r"'\x1b]0;x\x07' twice")
def escape_in_a_column(folder: Folder) -> list[str]:
    return folder.table("age,sex,income,\x1b]0;x\x07,\x1b]0;x\x07\n30,female,50,1,1\n")


@bad(r"da\u202eta.csv: there is no such file")
def direction_override_in_a_path(folder: Folder) -> list[str]:
    return folder.audit(data="da\u202eta.csv")


# Schemas.


@bad("schema.toml: there is no such file; feta init writes a first schema")
def no_schema(folder: Folder) -> list[str]:
    (folder.path / "schema.toml").unlink()
    return folder.audit()


@bad("model.onnx needs a schema: feta init")
def schema_left_out(folder: Folder) -> list[str]:
    model, data = (str(folder.path / name) for name in ("model.onnx", "data.csv"))
    return ["audit", model, "--data", data]


@bad("schema.toml: the schema is not valid TOML: ")
def broken_schema(folder: Folder) -> list[str]:
    return folder.schema("[columns]", "[columns")


@bad("schema.toml: the schema is not valid TOML: it is nested too deeply")
def nested_schema(folder: Folder) -> list[str]:
    return folder.schema('"approved"', "[" * 100_000)


@bad("schema.toml: got a folder or a device; expected a regular file")
def folder_as_schema(folder: Folder) -> list[str]:
    (folder.path / "schema.toml").unlink()
    (folder.path / "schema.toml").mkdir()
    return folder.audit()


@bad("schema.toml: the schema is too large: got 4096 MB; expected at most 16 MB")
def enormous_schema(folder: Folder) -> list[str]:
    os.truncate(folder.path / "schema.toml", 2**32)
    return folder.audit()


@bad("schema.toml: the schema is not valid TOML: ")
def number_of_5000_digits(folder: Folder) -> list[str]:
    return folder.schema("max = 100", "max = " + "9" * 5000)


@bad("schema.toml: column 'age': invalid center: got nan; expected a finite")
def nan_center(folder: Folder) -> list[str]:
    return folder.schema("center = 50.0", "center = nan")


@bad("schema.toml: derived column 'band': too many values in 'age': got 4,503,")
def bands_of_an_endless_column(folder: Folder) -> list[str]:
    band = f'band = {{ from = "age", values = {{ "all" = [18, {2**52}] }} }}'
    text = SCHEMA.replace("max = 90", f"max = {2**52}") + band
    (folder.path / "schema.toml").write_text(text)
    return folder.audit()


@bad("schema.toml: the schema is not UTF-8 text")
def binary_schema(folder: Folder) -> list[str]:
    (folder.path / "schema.toml").write_bytes(b"\xff\xfe\0")
    return folder.audit()


@bad("schema.toml: column 'age': unknown type: got", "did you mean 'integer'?")
def unknown_type(folder: Folder) -> list[str]:
    return folder.schema('"integer"', '"integers"')


@bad("schema.toml: column 'age': unknown type: got")
def list_as_type(folder: Folder) -> list[str]:
    return folder.schema('"integer"', '["integer"]')


@bad("schema.toml: column 'age': invalid min: got nan; expected an integer")
def nan_limit(folder: Folder) -> list[str]:
    return folder.schema("min = 18", "min = nan")


@bad("schema.toml: column 'income': invalid max: got an integer of 1329 bits")
def enormous_limit(folder: Folder) -> list[str]:
    return folder.schema("max = 100", "max = 1" + "0" * 400)


@bad("schema.toml: column 'income': too many levels: got step 1e-300")
def tiny_step(folder: Folder) -> list[str]:
    return folder.schema("max = 100", "max = 100, step = 1e-300")


@bad("schema.toml: no sensitive attribute")
def nothing_sensitive(folder: Folder) -> list[str]:
    (folder.path / "schema.toml").write_text(SCHEMA.replace(", sensitive = true", ""))
    return folder.audit()


@bad("schema.toml: the network has the wrong number of inputs", "got 4; expected 5")
def width_mismatch(folder: Folder) -> list[str]:
    return folder.schema('"male"]', '"male", "other"]')


@bad("schema.toml: [decision]: invalid favors: got 'up'; expected one of 'above', 'below'")
def unknown_side(folder: Folder) -> list[str]:
    return folder.schema("threshold = 0.5", 'threshold = 0.5\nfavors = "up"')


@bad("schema.toml: invalid probability threshold: got 50")
def percent_as_threshold(folder: Folder) -> list[str]:
    return folder.schema("threshold = 0.5", "threshold = 50")


@bad("schema.toml: a person has too many counterparts: got 4.1e+62; expected at most 2^62")
def endless_lattice(folder: Folder) -> list[str]:
    column = f'{{ type = "integer", min = 1, max = {2**52}, sensitive = true }}'
    lines = [f"c{n} = {column}" for n in range(4)]
    text = SCHEMA.split("[columns]", maxsplit=1)[0] + "[columns]\n" + "\n".join(lines)
    (folder.path / "schema.toml").write_text(text)
    return folder.audit()


@bad("schema.toml: center and scale are too extreme")
def overflowing_scale(folder: Folder) -> list[str]:
    return folder.schema("center = 50.0, scale = 20.0", "center = 1e300, scale = 1e-300")


# ONNX.


@bad("model.onnx: the file cannot be decoded; expected an ONNX model")
def truncated_onnx(folder: Folder) -> list[str]:
    return folder.model(good_model().SerializeToString()[:-100])


@bad("model.onnx: the file cannot be decoded; expected an ONNX model")
def random_onnx(folder: Folder) -> list[str]:
    return folder.model(np.random.default_rng(0).bytes(5000))


@bad("model.onnx: the file has no operators; expected an ONNX model with operators")
def empty_onnx(folder: Folder) -> list[str]:
    return folder.model(b"")


@bad("model.onnx: the stored array 'W1' has an invalid size: got the shape [1099511627776, ")
def huge_dimensions_without_data(folder: Folder) -> list[str]:
    model = good_model()
    model.graph.initializer[0].dims[:] = [2**40, 2**40]
    return folder.model(model)


@bad("model.onnx: the stored array 'W1' has an invalid size: got the shape [0, 46")
def huge_dimension_next_to_a_zero(folder: Folder) -> list[str]:
    model = good_model()
    model.graph.initializer[0].dims[:] = [0, 2**62]
    return folder.model(model)


@bad("model.onnx: the stored array '' has an invalid size: got the shape [17179869184]")
def constant_of_64_gb(folder: Folder) -> list[str]:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[2**34])
    return folder.nodes(helper.make_node("Constant", [], ["c"], value=tensor), *NODES)


@bad("model.onnx: the file is too large: got 65536 MB; expected at most 128 MB")
def sparse_file_of_64_gb(folder: Folder) -> list[str]:
    arguments = folder.audit()
    os.truncate(folder.path / "model.onnx", 2**36)
    return arguments


@bad("model.onnx: the stored array 'W1' does not match its shape: got 11.75 numbers; expected 12")
def short_array(folder: Folder) -> list[str]:
    model = good_model()
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-1]
    return folder.model(model)


@bad("model.onnx: operator 0 (Relu) reads 'b', which no operator before it defines")
def cyclic_onnx(folder: Folder) -> list[str]:
    return folder.nodes(
        helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])
    )


@bad("model.onnx: operator 2 (Gemm) has a matrix of the wrong shape: got (2, 1); expected 3")
def shape_mismatch(folder: Folder) -> list[str]:
    return folder.model(good_model(W2=np.ones((1, 2))))


@bad("model.onnx: operator 0 (Gemm): the stored array 'W1' is not finite: got nan at (1, 2)")
def nan_weights(folder: Folder) -> list[str]:
    weight = WEIGHTS["W1"].copy()
    weight[1, 2] = np.nan
    return folder.model(good_model(W1=weight))


@bad("model.onnx: operator 2 (Gemm): the stored array 'b2' is not finite: got inf at (0,)")
def infinite_weights(folder: Folder) -> list[str]:
    return folder.model(good_model(b2=np.array([np.inf])))


@bad("model.onnx: operator 'evil' (Relu) of the domain 'com.evil' is not supported")
def custom_operator(folder: Folder) -> list[str]:
    node = helper.make_node("Relu", ["h1"], ["a1"], domain="com.evil", name="evil")
    return folder.nodes(NODES[0], node, *NODES[2:])


@bad("model.onnx: the file redefines the operator 'Relu'")
def redefined_operator(folder: Folder) -> list[str]:
    model = good_model()
    body = [helper.make_node("Neg", ["a"], ["b"])]
    imports = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("", "Relu", ["a"], ["b"], body, imports))
    return folder.model(model)


@bad(
    "model.onnx: the opset is not supported: got 999; expected 7 to ",
    "export with opset_version=17",
)
def opset_999(folder: Folder) -> list[str]:
    return folder.nodes(*NODES, opset=999)


def _external(folder: Folder, location: str, *options: str, **fields: str) -> list[str]:
    model = good_model()
    tensor = model.graph.initializer[0]
    raw = tensor.raw_data
    (folder.path / "weights.bin").write_bytes(raw)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **fields}.items():
        tensor.external_data.add(key=key, value=value)
    return folder.model(model, *options)


@bad("model.onnx: the stored array 'W1' is stored in another file, which FETA does not read")
def external_data_not_asked_for(folder: Folder) -> list[str]:
    return _external(folder, "weights.bin")


@bad("model.onnx: the stored array 'W1' has an invalid location: got '../weights.bin'")
def external_data_above(folder: Folder) -> list[str]:
    return _external(folder, "../weights.bin", "--external-data")


@bad("model.onnx: the stored array 'W1' has an invalid location: got '/etc/passwd'")
def external_data_by_absolute_path(folder: Folder) -> list[str]:
    return _external(folder, "/etc/passwd", "--external-data")


@bad("model.onnx: the stored array 'W1' has an invalid location: got 'link.bin'")
def external_data_by_symlink(folder: Folder) -> list[str]:
    (folder.path / "link.bin").symlink_to("/etc/passwd")
    return _external(folder, "link.bin", "--external-data")


@bad("model.onnx: got a folder or a device; expected a regular file")
def external_data_in_a_pipe(folder: Folder) -> list[str]:
    os.mkfifo(folder.path / "pipe.bin")
    return _external(folder, "pipe.bin", "--external-data")


@bad("model.onnx: got a folder or a device; expected a regular file")
def external_data_in_the_folder_above(folder: Folder) -> list[str]:
    return _external(folder, "..", "--external-data")


@bad("model.onnx: there is no such file: 'nowhere.bin'")
def external_data_missing(folder: Folder) -> list[str]:
    return _external(folder, "nowhere.bin", "--external-data")


@bad("got offset 4 and length 48; expected both within 'weights.bin', which has 48 bytes")
def external_data_too_short(folder: Folder) -> list[str]:
    return _external(folder, "weights.bin", "--external-data", offset="4")


@bad("has an invalid offset: got '-9'; expected an integer")
def external_data_before_its_file(folder: Folder) -> list[str]:
    return _external(folder, "weights.bin", "--external-data", offset="-9")


@bad("does not match its shape: got 47 bytes; expected 48")
def external_data_with_a_lying_length(folder: Folder) -> list[str]:
    return _external(folder, "weights.bin", "--external-data", length="47")


@bad("got a folder or a device; expected a regular file")
def device_as_model(folder: Folder) -> list[str]:
    (folder.path / "zero.onnx").symlink_to("/dev/zero")
    return folder.audit(model="zero.onnx")


# Archives and pickles.


class Canary:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.path,)


def _pickle(folder: Folder, name: str) -> list[str]:
    return folder.file(name, pickle.dumps(Canary(folder.path / "canary")))


PICKLE_REFUSAL = "opening this type of file could run any code hidden in it, so FETA does not"


@bad("model.pkl: " + PICKLE_REFUSAL, "add --trust-pickle, or save the model once from Python")
def pickled_model(folder: Folder) -> list[str]:
    return _pickle(folder, "model.pkl")


@bad("model.joblib: " + PICKLE_REFUSAL)
def joblib_model(folder: Folder) -> list[str]:
    return _pickle(folder, "model.joblib")


@bad("model.PT: " + PICKLE_REFUSAL)
def torch_model(folder: Folder) -> list[str]:
    return _pickle(folder, "model.PT")


@bad("model.npz: the file is not an npz archive")
def pickle_called_npz(folder: Folder) -> list[str]:
    return _pickle(folder, "model.npz")


@bad("model.feta: the file is not a .feta model")
def pickle_called_feta(folder: Folder) -> list[str]:
    return _pickle(folder, "model.feta")


@bad("model.onnx: the file cannot be decoded; expected an ONNX model")
def pickle_called_onnx(folder: Folder) -> list[str]:
    return _pickle(folder, "model.onnx")


@bad("model.npz: 'fc.weight.npy' has an unsupported type: got object; expected numbers")
def pickle_inside_npz(folder: Folder) -> list[str]:
    array = np.array([Canary(folder.path / "canary")], dtype=object)
    content = io.BytesIO()
    np.savez(content, allow_pickle=True, **{"fc.weight": array})
    return folder.file("model.npz", content.getvalue(), "--layers", "fc")


def npz(members: dict[str, bytes]) -> bytes:
    """Pack members into an archive as numpy does."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def npy(shape: tuple[int, ...], content: bytes, kind: str = "<f8") -> bytes:
    """Write an array whose header may state a wrong shape."""
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@bad("model.npz: the unpacked file is too large: got 150,994,944 bytes; expected")
def zip_bomb(folder: Folder) -> list[str]:
    return folder.file("model.npz", npz({f"{n}.npy": bytes(2**24) for n in range(9)}))


@bad("model.npz: the file is not an npz archive")
def zip_bomb_with_a_lying_size(folder: Folder) -> list[str]:
    content = npz({"fc.weight.npy": bytes(2**24)})
    return folder.file(
        "model.npz", content.replace(struct.pack("<I", 2**24), struct.pack("<I", 64))
    )


@bad("model.npz: '../../canary.npy' is not a numpy array")
def zip_slip(folder: Folder) -> list[str]:
    return folder.file("model.npz", npz({"../../canary.npy": b"written"}), "--layers", "fc")


@bad("expected the shape (1000000, 1000000)")
def npz_with_a_lying_header(folder: Folder) -> list[str]:
    members = {"fc.weight.npy": npy((10**6, 10**6), bytes(64))}
    return folder.file("model.npz", npz(members), "--layers", "fc")


@bad("model.safetensors: the file is not in the safetensors format")
def safetensors_with_a_lying_header(folder: Folder) -> list[str]:
    return folder.file("model.safetensors", struct.pack("<Q", 2**62) + b"{}", "--layers", "fc")


def safetensors_layers() -> bytes:
    """Store the good network's layers by name."""
    names = {"W1": "fc1.weight", "b1": "fc1.bias", "W2": "out.weight", "b2": "out.bias"}
    return bytes(save({names[name]: array for name, array in WEIGHTS.items()}))


@bad(
    "model.safetensors: the names of the layers are missing; expected them in order (--layers a,b",
    "'fc1', 'out'",
)
def layers_not_named(folder: Folder) -> list[str]:
    return folder.file("model.safetensors", safetensors_layers())


@bad("model.safetensors: unknown array: got", "did you mean 'fc1.weight'?")
def layer_misspelled(folder: Folder) -> list[str]:
    return folder.file("model.safetensors", safetensors_layers(), "--layers", "fc2,out")


@bad("model.feta: the file is not a .feta model")
def random_feta(folder: Folder) -> list[str]:
    return folder.file("model.feta", np.random.default_rng(1).bytes(3000))


@bad("model.mlmodel: the file type is not supported: got '.mlmodel'; expected .feta, .onnx")
def unknown_kind_of_model(folder: Folder) -> list[str]:
    return folder.file("model.mlmodel", b"HDF")


@bad("model.h5: the file is not a complete .keras or .h5 model")
def torn_h5(folder: Folder) -> list[str]:
    return folder.file("model.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 64)


@bad("model.keras: the file is not a .keras archive")
def torn_keras(folder: Folder) -> list[str]:
    return folder.file("model.keras", b"PK\x03\x04" + b"\0" * 64)


@bad("nowhere.onnx: there is no such file")
def no_model(folder: Folder) -> list[str]:
    return folder.audit(model="nowhere.onnx")


# Other commands and output paths.


@bad("taken: --out is a file; expected a folder")
def out_is_a_file(folder: Folder) -> list[str]:
    (folder.path / "taken").write_text("mine")
    return [*folder.audit()[:-1], str(folder.path / "taken")]


def predict(folder: Folder, table: str) -> list[str]:
    """Return the command that makes fair decisions for the people of a table."""
    arguments = folder.table(table)
    return ["predict", *arguments[1:-1], str(folder.path / "out.csv")]


@bad("data.csv, row 2: 'income' is invalid: got 'x'; expected a number from 0 to 100")
def bad_row_to_decide(folder: Folder) -> list[str]:
    return predict(folder, "income\n50\nx\n")


@bad("data.csv: the table must have the column 'income'")
def missing_column_to_decide(folder: Folder) -> list[str]:
    return predict(folder, "age,sex\n30,female\n")


def init(folder: Folder, table: str, *options: str) -> list[str]:
    """Return the command that infers a schema."""
    (folder.path / "data.csv").write_text(table, encoding="utf-8")
    model, data, out = (str(folder.path / name) for name in ("model.onnx", "data.csv", "out"))
    return ["init", model, data, "--out", out, *options]


@bad("data.csv: no sensitive columns: got an empty --sensitive", "some of age, sex, income; add")
def init_without_sensitive_columns(folder: Folder) -> list[str]:
    return init(folder, CSV)


@bad("data.csv: the table must have the column 'agee'", "did you mean 'age'?")
def init_with_an_unknown_column(folder: Folder) -> list[str]:
    return init(folder, CSV, "--sensitive", "agee")


@bad(
    "data.csv, row 2: 'age' is missing: got an empty cell; expected a value in every row; fill "
    "or correct it, or leave the column out"
)
def init_with_an_empty_cell(folder: Folder) -> list[str]:
    return init(folder, "age,sex,income\n30,male,1\n,female,2\n", "--sensitive", "sex")


@bad("data.csv, row 2: 'age' is invalid: got inf; expected a finite number", "--leave-out")
def init_with_an_infinite_number(folder: Folder) -> list[str]:
    return init(folder, "age,sex,income\n30,male,1\n1e400,female,2\n", "--sensitive", "sex")


@bad("data.csv, row 2: wrong number of cells: got 2; expected 3, like the header")
def init_with_a_ragged_row(folder: Folder) -> list[str]:
    return init(folder, "age,sex,income\n30,male,1\n30,male\n", "--sensitive", "sex")


@bad("data.csv: 'note' is not a category: got more than 1000 different texts")
def init_with_free_text(folder: Folder) -> list[str]:
    rows = "\n".join(f"{18 + n % 70},text {n}" for n in range(1500))
    return init(folder, f"age,note\n{rows}\n", "--sensitive", "age")


@bad("data.csv: invalid limit for 'age': got ", "--leave-out")
def init_with_enormous_numbers(folder: Folder) -> list[str]:
    return init(folder, "age,sex\n1e300,male\n", "--sensitive", "sex")


@bad("'age' is in both --sensitive and --leave-out; name it in one")
def init_sensitive_and_left_out(folder: Folder) -> list[str]:
    return init(folder, CSV, "--sensitive", "age", "--leave-out", "age")


@bad("schema.toml exists already; name another file with --out")
def init_over_a_file(folder: Folder) -> list[str]:
    arguments = init(folder, CSV, "--sensitive", "age")
    return [*arguments[:4], str(folder.path / "schema.toml"), *arguments[5:]]
