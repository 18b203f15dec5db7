"""Text of single table cells: numbers in it, and how messages show it."""

# Characters of a cell that a message shows: about one line.
MAX_SHOWN = 80

# Characters of a longer cell that a message shows.
SHOWN_START = 60


def parse_number(cell: str) -> object:
    """Return the number in a text, or the text; 1_000 and digits of other scripts stay text."""
    try:
        return cell if "_" in cell or not cell.isascii() else float(cell)
    except ValueError:
        return cell


def is_empty(cell: object) -> bool:
    """Return whether a cell is None or blank."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def show_cell(cell: object) -> str:
    """Return a cell as messages show it."""
    if is_empty(cell):
        return "an empty cell"
    text = repr(cell)
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:SHOWN_START]}… ({len(text)} characters)"


def comma_hint(cell: object) -> str:
    """Return advice about numbers such as 1,5 and 1.234,50; empty for other cells."""
    if not isinstance(cell, str) or "," not in cell or len(cell) > MAX_SHOWN:
        return ""
    if isinstance(parse_number(cell.replace(".", "").replace(",", "")), str):
        return ""
    advice = "; write numbers with a decimal point and without thousands separators"
    if cell.count(",") > 1 or "." in cell:
        return advice
    return f'{advice}, or declare the decimal comma: decimal = "," in [table]'
