"""Agreement: how many of the paper's figures are met, said in plain words."""

from dataclasses import dataclass

from feta.io.sanitize import joined
from feta_paper.claims import claims
from feta_paper.measurements import Measurements
from feta_paper.paper import BLIND, COUNTERPART, NAMES, comparable
from feta_paper.quantities import figures, is_another, placed
from feta_paper.tables import ARMS, QUANTITIES


@dataclass(frozen=True, slots=True)
class Placed:
    """The paper's figures for a data set, by whether ours lie within two of its deviations."""

    within: tuple[str, ...]
    outside: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def all(self) -> int:
        """How many figures the paper gives with a deviation."""
        return len(self.within) + len(self.outside) + len(self.missing)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What stands at the top: a sentence, a few more, and numbers for tiles."""

    headline: str
    sentences: tuple[str, ...]
    tiles: tuple[tuple[str, str, str], ...]  # number, words, kind


def placed_all(measured: Measurements, variant: str = "") -> Placed:
    """Hold every comparable figure against ours; another data set's are not held against any."""
    sorted_by: dict[str, list[str]] = {"within": [], "outside": [], "missing": []}
    dataset = COUNTERPART.get(measured.dataset)
    for key in comparable(dataset) if dataset and not is_another(measured) else ():
        own = variant + _ours(measured, key, variant)
        where = placed(measured, own)
        kind = "missing" if where is None else "within" if where == "within" else "outside"
        sorted_by[kind].append(own)
    return Placed(*(tuple(sorted_by[kind]) for kind in ("within", "outside", "missing")))


def _ours(measured: Measurements, key: str, variant: str) -> str:
    """Choose the arm that answers to a cell: blind with fresh subsets, as in CE-Fair training."""
    if key != "blind.accuracy":
        return key
    fresh, fixed = BLIND
    return fresh if figures(measured, variant + fresh) or not figures(measured, variant + fixed) else fixed  # fmt: skip


def spoken(key: str) -> str:
    """Name a key in a sentence."""
    arm, _, quantity = key.rpartition(".")
    return f"{QUANTITIES[quantity].removesuffix(', %')} of “{ARMS[arm.rpartition('.')[2]]}”"


def agreement(measured: Measurements) -> Agreement:
    """Say what the run comes to."""
    blind = _ours(measured, "blind.accuracy", "")  # one reading of the paper counts, not both
    directions = [
        one.agrees
        for one in claims(measured)
        if one.paper and one.here and (one.right not in BLIND or one.right == blind)
    ]
    same, other = directions.count(True), directions.count(False)
    unclear = directions.count(None)
    rest = f"; for {unclear} these folds show no direction" if unclear else ""
    shown = f"Of {len(directions)} differences between approaches that the paper draws conclusions from and this run measured, {same} have the same direction here, {other} the other one{rest}."
    tiles = (
        (str(same), f"of {len(directions)} differences in the paper's direction", "good"),
        (str(other), "in the other direction", "bad"),
    )
    if is_another(measured):
        name = NAMES.get(COUNTERPART.get(measured.dataset, ""), "another data set")
        headline = f"{measured.title} is not the paper's {name}: no figure is held against another data set's."
        tiles = (
            (
                str(same),
                f"of {len(directions)} differences in the direction the paper finds on {name}",
                "",
            ),
            (str(other), "in the other direction", ""),
        )
        return Agreement(headline, (f"The paper's figures for {name} stand beside ours to be looked at, not to be met.", shown), tiles)  # fmt: skip
    counted = placed_all(measured)
    name = NAMES[measured.dataset]
    headline = f"Of {counted.all} figures the paper gives for {name} with a standard deviation, {len(counted.within)} lie within two of its standard deviations."
    sentences = [*_agreement(counted), shown]
    raw = placed_all(measured, "raw.")
    if raw.within or raw.outside:
        sentences.insert(1, f"That is with standardized inputs; with raw inputs {len(raw.within)} of {len(raw.within) + len(raw.outside)} measured figures do.")  # fmt: skip
    tiles = (
        (str(len(counted.within)), f"of {counted.all} figures within two deviations", "good"),
        (str(len(counted.outside)), "outside of them", "bad"),
        *(((str(len(counted.missing)), "not measured", "open"),) if counted.missing else ()),
        *tiles,
    )
    return Agreement(headline, tuple(sentences), tiles)


def _agreement(counted: Placed) -> list[str]:
    sentences = []
    if counted.outside:
        sentences.append(f"Outside: {joined([spoken(key) for key in counted.outside])}.")
    elif counted.within:
        sentences.append("None of the measured figures lies outside.")
    if counted.missing:
        sentences.append(f"Not measured: {joined([spoken(key) for key in counted.missing])}.")
    return sentences
