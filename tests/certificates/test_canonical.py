import json
from pathlib import Path

import pytest

from feta import Threshold
from feta.model import Model
from tests.certificates.certify import certify, check, check_with_javascript, claims_of, seal
from tests.certificates.test_claims import PEOPLE, SPACE, hidden

IDS = ["\x7f", "\x1f\b\f\n\r\t", 'quote " and \\', "é ☃ 😀", "\ud800", "</script>", "", "p" * 5000]


@pytest.mark.parametrize("name", IDS, ids=ascii)
def test_every_id_has_one_encoding(tmp_path: Path, name: str) -> None:
    folder = certify(tmp_path, Model(SPACE, hidden(), Threshold(0.0)), PEOPLE[:1])
    (claim,) = claims_of(folder)
    seal(folder, [claim | {"id": name}])
    assert json.loads((folder / "certificate.jsonl").read_bytes().splitlines()[1])["id"] == name
    assert check(folder) == 0
    assert check_with_javascript(folder) in (0, None)
