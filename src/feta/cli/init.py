"""`feta init`: a first schema, inferred from a model and a table, for a person to check."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.init_columns import infer_space
from feta.cli.init_conversation import (
    ask_columns,
    ask_decision,
    confirm_doubts,
    is_conversation,
    suggest_other,
    suggest_sensitive,
)
from feta.cli.init_decision import (
    StatedDecision,
    classes_of,
    decision_check,
    decision_comments,
    infer_decision,
    with_statements,
)
from feta.cli.init_table import Known, options_for
from feta.cli.notices import notice
from feta.errors import DomainError, SchemaError, missing
from feta.io.sanitize import listed, plain
from feta.io.schema import Schema, write_schema_text
from feta.io.schema_file import Decision, SchemaFile
from feta.io.schema_writer import format_schema
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.readers.sklearn.pipeline import encoder_values, read_columns, split_pipeline
from feta.readers.source import ModelSource, SourceOptions, open_source
from feta.scorer.network.embedding import embedded_inputs, expanded
from feta.scorer.network.network import Network
from feta.space.attribute import Attribute, Categorical

# Units that the last word of a column's name states.
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


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of `feta init`."""

    sensitive: list[str]
    leave_out: list[str]
    out: Path
    decision: StatedDecision = field(default_factory=StatedDecision)
    strip: bool = False


def run_init(
    model: Path, data: Path, options: InitOptions, source_options: SourceOptions
) -> ExitCode:
    """Infer types, domains and units; ask in a terminal; list what a person must check."""
    source = open_source(model, source_options, first_schema=True)
    for note in source.notes:
        notice(note)
    strip = options.strip
    table = TableFile(data, TableOptions(strip=strip))
    if table.delimiter not in (None, ","):
        table = TableFile(data, TableOptions(sep=table.delimiter, strip=strip))
    guess = infer_decision(source)
    asks = not options.sensitive and is_conversation()
    if asks:
        _refuse_existing(options.out)
        options = _ask(options, source, table, guess)
    sensitive, leave_out = (
        _match_names(names, table.names) for names in (options.sensitive, options.leave_out)
    )
    table.require([*sensitive, *leave_out])
    names = [name for name in table.names if name and name not in leave_out]
    pipeline = source.estimator is not None and split_pipeline(source.estimator)[0] is not None
    if pipeline:
        names = _pipeline_columns(source.estimator, names, sensitive, data)
    elif source.estimator is not None:
        names = _estimator_columns(source.estimator, names, sensitive)
    _check_options(data, options.out, names, sensitive, leave_out)
    decision = with_statements(guess, options.decision, classes_of(source))
    known: Known = encoder_values(source.estimator) if pipeline else {}
    table = TableFile(data, options_for(table, known, names)) if table.delimiter else table
    space, notes, table = infer_space(table, names, sensitive, known, pipeline=pipeline)
    units = _units(space.attributes)
    schema = Schema(SchemaFile(space, {}, {}, units, decision, table.options))
    _ = schema.rule  # raises for too many classes, before anything is written
    if asks and not confirm_doubts(notes):
        notice("nothing was written; correct the table or leave columns out, and run this again")
        return ExitCode.DONE
    named = source.estimator is not None
    stated = options.decision.states_outcome or options.decision.tolerance is not None
    comments = [] if stated else decision_comments(decision, named=named)
    text = format_schema(
        schema.file, comments=comments, column_comments=_column_comments(space.attributes, notes)
    )
    write_schema_text(text, options.out)
    _show(schema, options.out, source.network, [] if asks else notes, stated=stated)
    return ExitCode.DONE


def _ask(
    options: InitOptions, source: ModelSource, table: TableFile, guess: Decision
) -> InitOptions:
    """Ask for what the options do not state."""
    names = [name for name in table.names if name and name not in options.leave_out]
    read = None if source.estimator is None else _names_read(source.estimator)
    known = names if read is None else [name for name in names if name in read]
    sensitive = ask_columns("Sensitive columns", known, suggest_sensitive(known), required=True)
    leave_out = options.leave_out
    if read is None and not leave_out:
        others = [name for name in names if name not in sensitive]
        leave_out = ask_columns(
            "Columns that the model does not read", others, suggest_other(others), required=False
        )
    decision = options.decision
    if decision == StatedDecision():
        decision = ask_decision(guess, classes_of(source))
    return replace(options, sensitive=sensitive, leave_out=leave_out, decision=decision)


def _names_read(estimator: object) -> list[str] | None:
    """Return the columns that an estimator reads; None if it was fitted without names."""
    steps, last = split_pipeline(estimator)
    if steps is not None:
        return read_columns(estimator)
    names = getattr(last, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise SchemaError(f"{out} exists already; name another file with --out, or move it away")


def _column_comments(attributes: Sequence[Attribute], notes: Sequence[str]) -> dict[str, list[str]]:
    """Return the doubts about each column."""
    return {
        attribute.name: [note for note in notes if note.startswith(repr(attribute.name))]
        for attribute in attributes
    }


def _check_options(
    data: Path, out: Path, names: list[str], sensitive: list[str], leave_out: list[str]
) -> None:
    _refuse_existing(out)
    if not sensitive:
        raise SchemaError(
            f"{data}: no sensitive columns: got an empty --sensitive; "
            f"expected some of {listed(names, 12)}; add --sensitive a,b, or run this in a terminal"
        )
    if both := [name for name in sensitive if name in leave_out]:
        raise SchemaError(f"{both[0]!r} is in both --sensitive and --leave-out; name it in one")


def _pipeline_columns(
    estimator: object, names: list[str], sensitive: list[str], data: Path
) -> list[str]:
    """Leave out columns that a pipeline does not read, except sensitive ones."""
    read = read_columns(estimator)
    if read is None:  # fitted without names
        return names
    absent = [name for name in read if name not in names]
    if absent:
        raise DomainError(f"{data}: {missing(absent[0], names)}; the pipeline reads it")
    unread = [name for name in names if name not in read and name not in sensitive]
    if unread:
        notice(f"left out because the pipeline does not read them: {listed(unread)}")
    return [name for name in names if name not in unread]


def _estimator_columns(estimator: object, names: list[str], sensitive: list[str]) -> list[str]:
    """Order columns as an estimator without a pipeline was fitted, if it knows their names."""
    _, last = split_pipeline(estimator)
    read = [str(name) for name in getattr(last, "feature_names_in_", [])]
    if not read or not set(read) <= set(names):
        return names
    unread = [name for name in names if name not in read]
    if unread_sensitive := [name for name in sensitive if name in unread]:
        raise SchemaError(
            f"the estimator does not read {unread_sensitive[0]!r}, so no decision can depend on "
            f"it directly; name sensitive columns among {listed(read)}"
        )
    if unread:
        notice(f"left out because the estimator does not read them: {listed(unread)}")
    return read


def _match_names(names: list[str], known: list[str]) -> list[str]:
    """Strip the spaces around names that the table does not have: `age, sex`."""
    return [name if name in known else name.strip() for name in names]


def _units(attributes: tuple[Attribute, ...]) -> dict[str, str]:
    units = {}
    for attribute in attributes:
        last = attribute.name.lower().replace("-", "_").split("_")[-1]
        if not isinstance(attribute, Categorical) and last in UNITS:
            units[attribute.name] = UNITS[last]
    return units


def _show(
    schema: Schema, out: Path, network: Network | None, notes: list[str], *, stated: bool
) -> None:
    space = schema.space
    console = Console(stderr=True, soft_wrap=True)
    inputs = f", {space.width} network inputs" if network is not None else ""
    console.print(Text(f"Wrote {plain(out)}: {len(space.attributes)} columns{inputs}."))
    for note in notes:
        console.print(Text(plain(note), style="bold yellow"))
    if network is not None and space.width != network.width and expanded(network, space) is network:
        message = (
            f"The network has {network.width} inputs, not {space.width}: a category has one input "
            "per value. Leave out what the network does not read (--leave-out a,b), add values "
            f"that the data lack, or change types{embedded_inputs(network)}."
        )
        console.print(Text(message, style="bold yellow"))
    if space.finite:
        console.print(Text(f"Everybody has {space.lattice.size:,} counterparts."))
    console.print(Text("Check the schema before you trust a verdict:"))
    for line in _checks(schema.decision, network, stated=stated):
        console.print(Text(f"  - {line}"))
    console.print(Text("feta doctor checks whether the model can be audited with it."))


def _checks(decision: Decision, network: Network | None, *, stated: bool) -> list[str]:
    """Return what a person must check in the schema."""
    checks = [
        "min and max are the limits of this table: widen them to what may occur; in fair "
        "decisions all sensitive values within them have one vote each, unless --votes-from "
        "states how often each occurs;",
    ]
    check = decision_check(decision, stated=stated)
    checks += [] if check is None else [check]
    if network is None:
        return checks
    return [
        "the columns must be in the network's input order, and values in the order of its one-hot "
        "inputs;",
        "add center and scale to numbers that the network expects scaled: (x - center) / scale;",
        *checks,
    ]


def split_names(options: list[str] | None) -> list[str]:
    """Split comma-separated lists of names; an option that is repeated adds to the list."""
    names = (name for option in options or [] for name in option.split(","))
    return list(dict.fromkeys(name for name in names if name))
