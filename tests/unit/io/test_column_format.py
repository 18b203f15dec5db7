import tomllib

import numpy as np
import pytest

from feta import Categorical, SchemaError
from feta.io.column_format import ColumnFormat

OWNER = Categorical("owns_home?", ("False", "True"))
BOOLEANS = ColumnFormat(np.dtype(bool), "boolean", None)


def advice(*encoded: object) -> str:
    with pytest.raises(SchemaError, match="different types in schema and table") as caught:
        BOOLEANS.check(OWNER, encoded=encoded)
    return str(caught.value).rpartition("as in the table; ")[2]


def test_the_advice_is_valid_toml() -> None:
    values, line = advice().split(", or read the column as text, [table] ")
    assert tomllib.loads(line) == {"dtype": {"owns_home?": "str"}}
    assert tomllib.loads(values.removeprefix("write ")) == {"values": [False, True]}


def test_only_what_the_encoder_knows_is_advised() -> None:
    assert advice(False, True) == "write values = [false, true]"
    assert advice("False", "True").startswith("read the column as text")
