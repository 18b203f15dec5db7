"""The `[table]` section of a schema."""

import pytest

from feta import SchemaError
from feta.io.table_options import TableOptions
from feta.io.table_section import options_json, parse_table_options

SECTION = {
    "sep": ";",
    "decimal": ",",
    "dtype": {"zip": "str"},
    "na_values": {"zip": ["-"]},
    "keep_default_na": False,
    "true_values": ["yes"],
    "false_values": ["no"],
    "strip": True,
}


def test_all_options_are_read_and_written_back() -> None:
    assert options_json(parse_table_options(SECTION)) == SECTION


def test_options_with_their_default_are_not_written() -> None:
    assert parse_table_options({}) == TableOptions()
    assert options_json(parse_table_options({"decimal": ".", "strip": False})) == {}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (5, r"^\[table\] is not a table: got 5; expected options such as decimal"),
        ({"dezimal": ","}, r"unknown key: got 'dezimal'; .*; did you mean 'decimal'\?"),
        ({"sep": "::"}, r"^\[table\]: invalid sep: got '::'; expected one character$"),
        ({"decimal": 1}, "invalid decimal: got 1; expected one character"),
        ({"strip": "yes"}, "invalid strip: got 'yes'; expected true or false"),
        ({"true_values": "yes"}, "invalid true_values: got 'yes'; expected a list of texts"),
        ({"na_values": [1]}, r"invalid na_values: got \[1\]; expected a list of texts"),
        ({"na_values": {"zip": "-"}}, r"invalid na_values\.zip: got '-'; expected a list"),
        ({"dtype": "str"}, "invalid dtype: got 'str'; expected columns with types such as"),
        ({"dtype": {"zip": "txt"}}, "invalid dtype of 'zip': got 'txt'; expected a type of pandas"),
        ({"dtype": {"zip": 5}}, "invalid dtype of 'zip': got 5; expected a type of pandas"),
    ],
)
def test_an_invalid_option_is_rejected(section: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_table_options(section)
