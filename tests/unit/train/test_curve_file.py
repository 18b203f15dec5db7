import sys

import pytest

from feta import MissingExtra
from feta.train.curve_file import import_matplotlib


def test_a_missing_matplotlib_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    expected = r"^matplotlib is not installed; pip install 'feta-fair\[torch\]'$"
    with pytest.raises(MissingExtra, match=expected):
        import_matplotlib()
