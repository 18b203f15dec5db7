"""Init table: the pandas options that a fitted model's encoders show, where they are not the defaults."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from feta.absorb.known_values import KnownValues
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions

Known = Mapping[str, KnownValues]

# Texts of a column that are looked at: more than two spellings of two booleans are none.
SEVERAL = 8


def options_for(table: TableFile, known: Known, names: Collection[str]) -> TableOptions:
    """Find how the table must be read so that its values are of the types that the encoders know."""
    options = _missing_texts(table.options, known, names)
    options = _truth_words(TableFile(table.path, options), known)
    options = _marks(TableFile(table.path, options), known)
    formats = TableFile(table.path, options).formats([name for name in names if name in known])
    texts = {
        name: "str"
        for name, one in known.items()
        if one.as_text and name in formats and formats[name].kind != "text"
    }
    return replace(options, dtype={**options.dtype, **texts})


# Pairs of texts that programs read as booleans with true_values and false_values.
TRUTHS = (("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))


def _truth_words(table: TableFile, known: Known) -> TableOptions:
    """Read "yes" and "no" as booleans where an encoder knows booleans and the table has such texts."""
    names = [
        name
        for name, one in known.items()
        if one.values and all(isinstance(value, bool) for value in one.values)
    ]
    formats = table.formats(names)
    texts = {name: one for name, one in formats.items() if one.kind == "text"}
    trues, falses = set(table.options.true_values), set(table.options.false_values)
    seen = {name: set[str]() for name in texts}
    for frame in table.frames(texts) if texts else ():
        for name in texts:
            seen[name] |= set(frame[name].dropna().unique().tolist()[:SEVERAL])
    for words in seen.values():
        for yes, no in TRUTHS:
            if words and {word.lower() for word in words} <= {yes, no}:
                trues |= {word for word in words if word.lower() == yes}
                falses |= {word for word in words if word.lower() == no}
    return replace(
        table.options, true_values=tuple(sorted(trues)), false_values=tuple(sorted(falses))
    )


# Texts that tables hold instead of an empty cell, and that pandas keeps as they are.
MARKS = ("?", "-", "--", ".", "*", "missing", "unknown", "not available", "n.a.", "none", "nil")


def _marks(table: TableFile, known: Known) -> TableOptions:
    """Read a mark such as "?" as missing where an encoder knows missing cells, and not the mark."""
    names = [
        name for name, one in known.items() if one.as_text and (one.marker == "NaN" or one.filled)
    ]
    formats = {name: one for name, one in table.formats(names).items() if one.kind == "text"}
    found: dict[str, set[str]] = {name: set() for name in formats}
    for frame in table.frames(formats) if formats else ():
        for name in formats:
            texts = [text for text in frame[name].dropna().unique() if isinstance(text, str)]
            marks = {text for text in texts if text.strip().lower() in MARKS}
            found[name] |= marks - set(known[name].values)
    added = {name: tuple(sorted(marks)) for name, marks in found.items() if marks}
    if not added:
        return table.options
    listed = table.options.na_values
    given = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(table.names, listed)
    merged = {name: (*given.get(name, ()), *added.get(name, ())) for name in {*given, *added}}
    kept = {name: merged[name] for name in sorted(merged) if merged[name]}
    return replace(table.options, na_values=kept)


def _missing_texts(options: TableOptions, known: Known, names: Collection[str]) -> TableOptions:
    """Keep texts that pandas would take for missing, such as "NA", where an encoder knows them."""
    texts = {name: _taken_for_missing(one) for name, one in known.items()}
    if not any(texts.values()):
        return options
    empty = {name for name, found in texts.items() if "" in found}
    if not empty:
        return replace(options, keep_default_na=False, na_values=("",))
    others = {name: ("",) for name in names if name not in empty}
    return replace(options, keep_default_na=False, na_values=others)


def _taken_for_missing(known: KnownValues) -> list[str]:
    """List the texts that an encoder knows and that pandas reads as missing by default."""
    texts = [value for value in known.values if isinstance(value, str)]
    if not texts:
        return []
    cells = TableOptions().frame({"value": texts}, {"value": "str"})["value"]
    return [text for text, gone in zip(texts, cells.isna(), strict=True) if gone]


def decimal_comma(table: TableFile, columns: Collection[str]) -> TableOptions | None:
    """Return options with a decimal comma, if that makes numbers of all these columns."""
    options = replace(table.options, decimal=",")
    formats = TableFile(table.path, options).formats(columns)
    numbers = all(one.kind in ("integer", "number") for one in formats.values())
    return options if columns and numbers else None
