"""Plain: names and values of strangers made harmless, for terminals and spreadsheets."""

# What a spreadsheet takes for the start of a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def plain(value: object) -> str:
    """Show a value with control, escape and direction characters spelled out."""
    return "".join(one if one.isprintable() else _escaped(one) for one in str(value))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def csv_cell(value: object) -> object:
    """Make a cell that no spreadsheet runs as a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if value.startswith(FORMULA_STARTS) else text
