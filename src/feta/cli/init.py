"""`feta init`: a first schema guessed from model and data, to be read by a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.absorb.encoders import attribute_of
from feta.absorb.known_values import KnownValues
from feta.cli.audit import notice
from feta.cli.exit_code import ExitCode
from feta.cli.init_table import Known, decimal_comma, options_for
from feta.cli.progress import progress_bar
from feta.errors import DomainError, SchemaError, missing
from feta.io.cell_text import comma_hint, parse_number
from feta.io.oddities import oddities
from feta.io.sanitize import listed, plain
from feta.io.schema import Schema, write_schema
from feta.io.schema_file import Decision, SchemaFile
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.readers.sklearn.read import encoder_values, read_columns, taken_apart
from feta.readers.source import ModelSource, SourceOptions, open_source
from feta.scorer.network.embedding import embedded_inputs, expanded
from feta.scorer.network.network import Network
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace
from feta.space.infer_schema import FILL, ColumnSummary

# Units that a column's name gives away.
UNITS = {
    "age": "years",
    "years": "years",
    "months": "months",
    "days": "days",
    "hours": "hours",
    "eur": "EUR",
    "usd": "USD",
    "dm": "DM",
    "percent": "%",
}


def run_init(
    model: Path,
    data: Path,
    sensitive: list[str],
    leave_out: list[str],
    out: Path,
    options: SourceOptions,
    *,
    strip: bool = False,
) -> ExitCode:
    """Guess types, domains and units; say what a person has to check."""
    source = open_source(model, options)
    for note in source.notes:
        notice(note)
    table = TableFile(data, TableOptions(strip=strip))
    if table.delimiter not in (None, ","):
        table = TableFile(data, TableOptions(sep=table.delimiter, strip=strip))
    sensitive, leave_out = (_stripped(names, table.names) for names in (sensitive, leave_out))
    table.require([*sensitive, *leave_out])
    names = [name for name in table.names if name and name not in leave_out]
    pipeline = source.estimator is not None and taken_apart(source.estimator)[0] is not None
    if pipeline:
        names = _in_pipeline(source.estimator, names, sensitive, data)
    elif source.estimator is not None:
        names = _in_order(source.estimator, names, sensitive)
    if out.exists():
        raise SchemaError(f"{out} exists already; name another file with --out, or move it away")
    if not sensitive:
        message = f"{data}: name the sensitive columns with --sensitive a,b; the columns are {listed(names, 12)}"
        raise SchemaError(message)
    if both := [name for name in sensitive if name in leave_out]:
        raise SchemaError(f"{both[0]!r} must be sensitive or left out, not both")
    known: Known = encoder_values(source.estimator) if pipeline else {}
    table = TableFile(data, options_for(table, known, names)) if table.delimiter else table
    space, notes, table = _guessed(table, names, sensitive, known, pipeline=pipeline)
    units = _units(space.attributes)
    schema = Schema(SchemaFile(space, {}, {}, units, _guessed_decision(source), table.options))
    _ = schema.rule  # more classes than a rule can have are told before anything is written
    write_schema(schema, out)
    _show(schema, out, source.network, notes)
    return ExitCode.DONE


def _in_pipeline(
    estimator: object, names: list[str], sensitive: list[str], data: Path
) -> list[str]:
    """Leave out what a pipeline does not read, but for sensitive columns."""
    read = read_columns(estimator)
    if read is None:  # fitted without names
        return names
    lacking = [name for name in read if name not in names]
    if lacking:
        raise DomainError(f"{data}: {missing(lacking[0], names)}; the pipeline reads it")
    left = [name for name in names if name not in read and name not in sensitive]
    if left:
        notice(f"left out, since the pipeline does not read them: {listed(left)}")
    return [name for name in names if name not in left]


def _in_order(estimator: object, names: list[str], sensitive: list[str]) -> list[str]:
    """Put columns into the order in which an estimator without a pipeline was fitted, if it tells."""
    _, last = taken_apart(estimator)
    read = [str(name) for name in getattr(last, "feature_names_in_", [])]
    if not read or not set(read) <= set(names):
        return names
    left = [name for name in names if name not in read]
    if unread := [name for name in sensitive if name in left]:
        message = f"the estimator does not read {unread[0]!r}, so no decision can hang on it directly; name sensitive columns among {listed(read)}"
        raise SchemaError(message)
    if left:
        notice(f"left out, since the estimator does not read them: {listed(left)}")
    return read


def _guessed_decision(source: ModelSource) -> Decision:
    """Name the decisions after the model's own classes, if it has names for them."""
    if source.network is not None:
        if source.network.outputs == 1 and not source.network.sigmoid:
            return Decision(score=0.0)  # its outputs are no probabilities
        if source.network.outputs <= 2:
            return Decision(probability=0.5)
        return Decision(classes=tuple(f"class {n}" for n in range(source.network.outputs)))
    classes = getattr(taken_apart(source.estimator)[1], "classes_", None)
    if classes is None:
        return Decision(tolerance=0.0)
    names = [str(one) for one in classes]
    if len(names) == 2:
        return Decision(favorable=names[1], unfavorable=names[0], probability=0.5)
    return Decision(classes=tuple(names))


def _stripped(told: list[str], known: list[str]) -> list[str]:
    """Take names as they are, or without the spaces around them: age, sex."""
    return [name if name in known else name.strip() for name in told]


def _guessed(
    table: TableFile, names: list[str], sensitive: list[str], known: Known, *, pipeline: bool
) -> tuple[FeatureSpace, list[str], TableFile]:
    """Guess every column, and say what looks odd; return how the table is read in the end."""
    summaries = _summaries(table, names, missing=pipeline)
    found: list[Attribute] = []
    notes: list[str] = []
    for name in names:
        with _located(name, table.path):
            attribute = summaries[name].attribute(sensitive=name in sensitive)
            if name in known:
                attribute, said = by_encoder(attribute, summaries[name].values(), known[name])
                notes += said
            found.append(attribute)
    commas = [one for one in found if isinstance(one, Categorical) and _has_commas(one)]
    columns = [one.name for one in commas if one.name not in known]
    options = decimal_comma(table, columns) if pipeline and table.delimiter else None
    if options is not None:
        notes.append(f"{listed(columns)}: numbers with a decimal comma; [table] says so")
        again = TableFile(table.path, options)
        space, more, again = _guessed(again, names, sensitive, known, pipeline=pipeline)
        return space, notes + more, again
    notes += [
        f"{one.name!r} became a category, since it holds texts such as {one.values[0]!r}: write numbers with a decimal point and without thousands separators, and run this again"
        for one in commas
    ]
    for attribute in found:
        notes += oddities(attribute, summaries[attribute.name].numbers)
    return FeatureSpace(tuple(found)), notes, table


def _summaries(table: TableFile, names: list[str], *, missing: bool) -> dict[str, ColumnSummary]:
    """Look at every row, as pandas reads it."""
    summaries = {name: ColumnSummary(name, missing=missing) for name in names}
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(table.path.name)}", total=1.0)
        for chunk in table.chunks(set(names), typed=table.formats(names)):
            chunk.check()
            assert chunk.frame is not None
            for name in names:
                with _located(name, table.path):
                    summaries[name].add(list(chunk.frame[name].astype(object)))
            progress.update(task, completed=chunk.progress)
    return summaries


def by_encoder(
    attribute: Attribute, seen: list[object] | None, known: KnownValues
) -> tuple[Attribute, list[str]]:
    """Declare a column by what the model's encoder knows; `seen` is what the table holds."""
    assert not isinstance(attribute, Derived)
    if seen and all(isinstance(one, bool) for one in seen) and set(known.values) <= {0, 1}:
        return attribute, []  # the encoder keeps booleans of a nullable type as numbers
    missing = attribute.missing or (known.marker is not None and not known.filled)
    declared = attribute_of(
        attribute.name, known.values, sensitive=attribute.sensitive, missing=missing
    )
    extra = None if seen is None else [one for one in seen if one not in set(known.values)]
    if declared is None or extra is None:
        return attribute, []
    if not extra:
        return declared, []
    hint = _look_alike(extra, known)
    if attribute.sensitive:
        message = f"the sensitive column {attribute.name!r} holds {len(extra):,} {'value' if len(extra) == 1 else 'values'} that the model's encoder never saw in training, such as {extra[0]!r}; it knows {listed([repr(one) for one in known.values])}{hint or '; correct the table, or leave out such rows'}"
        raise SchemaError(message)
    if hint:
        return attribute, [
            f"{attribute.name!r} holds {extra[0]!r}, which the model's encoder never saw{hint}"
        ]
    if isinstance(declared, Categorical) and known.takes_unknown and known.as_text:
        what = "1 value" if len(extra) == 1 else f"{len(extra):,} values"
        note = f"{attribute.name!r} holds {what} that the model's encoder never saw, such as {extra[0]!r}: with other = true the schema admits them, and the model treats them as unknown"
        return replace(declared, other=True), [note]
    return attribute, []


def _look_alike(extra: list[object], known: KnownValues) -> str:
    """Say that an unknown text differs from a known one only in blanks or case."""
    texts = [value for value in known.values if isinstance(value, str)]
    for value in extra:
        if isinstance(value, str) and value.strip() in texts:
            return f"; it differs from {value.strip()!r} only in blanks: run this again with --strip if your program strips them, or correct the table"
        if isinstance(value, str) and value.strip().casefold() in {one.casefold() for one in texts}:
            return f"; {value!r} differs from a known value only in case: correct the table"
    return ""


def _has_commas(attribute: Categorical) -> bool:
    """Say whether a category's values are numbers, some of them with a decimal comma."""
    texts = [value for value in attribute.values if isinstance(value, str)]
    whole = [text for text in texts if not isinstance(parse_number(text), str)]
    commas = [text for text in texts if comma_hint(text)]
    return bool(commas) and len(commas) + len(whole) == len(attribute.values)


@contextmanager
def _located(name: str, path: Path) -> Iterator[None]:
    """Name file and row in what is said about a column, and the way out."""
    advice = "fill or correct it, or leave the column out (--leave-out)"
    try:
        yield
    except DomainError as error:
        if error.row is None:
            raise DomainError(f"{path}: {error}; {advice}", column=name) from None
        what = (
            error.what.partition(FILL)[0]
            .replace("got nan", "got an empty cell")
            .replace("got None", "got an empty cell")
        )
        message = f"{path}, row {error.row + 1}: {name!r} {what}; {advice}"
        raise DomainError(message, column=name, row=error.row) from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}; {advice}") from None


def _units(attributes: tuple[Attribute, ...]) -> dict[str, str]:
    units = {}
    for attribute in attributes:
        last = attribute.name.lower().replace("-", "_").split("_")[-1]
        if not isinstance(attribute, Categorical) and last in UNITS:
            units[attribute.name] = UNITS[last]
    return units


def _show(schema: Schema, out: Path, network: Network | None, notes: list[str]) -> None:
    space = schema.space
    console = Console(stderr=True, soft_wrap=True)
    inputs = space.width if network is None else network.width
    wide = f", {space.width} network inputs" if network is not None else ""
    console.print(Text(f"Wrote {plain(out)}: {len(space.attributes)} columns{wide}."))
    for note in notes:
        console.print(Text(plain(note), style="bold yellow"))
    if space.width != inputs and network is not None and expanded(network, space) is network:
        message = f"The network has {inputs} inputs, not {space.width}: a category takes one input a value. Leave out what the network does not read (--leave-out a,b), add values that the data lack, or change types{embedded_inputs(network)}."
        console.print(Text(message, style="bold yellow"))
    if space.finite:
        console.print(Text(f"Everybody has {space.lattice.size:,} counterparts."))
    console.print(Text("Check it before you trust an answer:"))
    by_network = (
        "the columns must stand in the network's input order, and values in the order of its one-hot inputs;",
        "add center and scale to numbers that the network expects scaled: (x - center) / scale;",
    )
    for line in (
        *(by_network if network is not None else ()),
        "min and max are what this table holds: widen them to what may occur; in fair decisions all sensitive values in them vote alike, unless --vote-weights says how often each occurs;",
        "[decision] must name the classes, in the order of the network's outputs."
        if schema.decision.classes
        else "[decision] must name the favorable outcome; the network ends in no sigmoid, so score = 0.0 stands for the probability 0.5: write another score if your program compares its outputs with one; a regression has tolerance = … instead."
        if schema.decision.score is not None
        else "[decision] must have the tolerance: by how much the scores of counterparts may differ; 0.0 stands for none."
        if schema.decision.tolerance is not None
        else "[decision] must name the favorable outcome and the threshold; a regression has tolerance = … instead.",
    ):
        console.print(Text(f"  - {line}"))
    console.print(Text("feta doctor says whether the model can be audited with it."))


def split_names(names: str | None) -> list[str]:
    """Split a list of names given with commas."""
    return [name for name in (names or "").split(",") if name]
