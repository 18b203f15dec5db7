"""Agreement with the paper: how many of its figures and differences the run reproduces."""

from dataclasses import dataclass

from feta.io.sanitize import joined
from feta_paper.claims import claims
from feta_paper.labels import describe
from feta_paper.measurements import Measurements
from feta_paper.paper import BLIND, COUNTERPART, NAMES, comparable
from feta_paper.quantities import fold_values, other_dataset, place_of

# Number, text, kind.
Tile = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Placements:
    """The keys of the paper's figures by whether ours are within two of its deviations."""

    within: tuple[str, ...]
    outside: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def total(self) -> int:
        """The number of figures that the paper prints with a deviation."""
        return len(self.within) + len(self.outside) + len(self.missing)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The top of the page: a headline, a few sentences, and numbers in tiles."""

    headline: str
    sentences: tuple[str, ...]
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Directions:
    """The differences of the paper that were measured, by their direction in this run."""

    same: int
    opposite: int
    unclear: int

    @property
    def total(self) -> int:
        """The number of differences that were measured."""
        return self.same + self.opposite + self.unclear


def placements(measured: Measurements, variant: str = "") -> Placements:
    """Compare all comparable figures with ours; none if the paper has another data set."""
    keys: dict[str, list[str]] = {"within": [], "outside": [], "missing": []}
    dataset = COUNTERPART.get(measured.dataset)
    for key in comparable(dataset) if dataset and not other_dataset(measured) else ():
        our_key = variant + _our_key(measured, key, variant)
        place = place_of(measured, our_key)
        kind = "missing" if place is None else "within" if place == "within" else "outside"
        keys[kind].append(our_key)
    return Placements(*(tuple(keys[kind]) for kind in ("within", "outside", "missing")))


def _our_key(measured: Measurements, key: str, variant: str) -> str:
    """Return our key for a cell; the blind network has fresh subsets, as in CE-Fair training."""
    if key != "blind.accuracy":
        return key
    fresh, fixed = BLIND
    if fold_values(measured, variant + fresh) or not fold_values(measured, variant + fixed):
        return fresh
    return fixed


def agreement(measured: Measurements) -> Agreement:
    """Summarize the run."""
    directions = _directions(measured)
    if other_dataset(measured):
        return _other_dataset_agreement(measured, directions)
    placed, name = placements(measured), NAMES[measured.dataset]
    headline = (
        f"Of {placed.total} figures the paper gives for {name} with a standard deviation, "
        f"{len(placed.within)} are within two of its standard deviations."
    )
    sentences = [*_placement_sentences(placed), _direction_sentence(directions)]
    raw = placements(measured, "raw.")
    if raw.within or raw.outside:
        n_raw = len(raw.within) + len(raw.outside)
        sentence = (
            "These figures are with standardized inputs. "
            f"With raw inputs, {len(raw.within)} of {n_raw} measured figures are within."
        )
        sentences.insert(1, sentence)
    same = f"of {directions.total} differences in the paper's direction"
    tiles = (
        (str(len(placed.within)), f"of {placed.total} figures within two deviations", "good"),
        (str(len(placed.outside)), "outside of them", "bad"),
        *(((str(len(placed.missing)), "not measured", "open"),) if placed.missing else ()),
        (str(directions.same), same, "good"),
        (str(directions.opposite), "in the opposite direction", "bad"),
    )
    return Agreement(headline, tuple(sentences), tiles)


def _directions(measured: Measurements) -> Directions:
    blind = _our_key(measured, "blind.accuracy", "")  # one reading of the paper counts, not both
    agrees = [
        claim.agrees
        for claim in claims(measured)
        if claim.paper and claim.here and (claim.right not in BLIND or claim.right == blind)
    ]
    return Directions(agrees.count(True), agrees.count(False), agrees.count(None))


def _direction_sentence(directions: Directions) -> str:
    unclear = f" For {directions.unclear}, these folds show no direction."
    return (
        "The paper draws conclusions from differences between approaches. "
        f"Of the {directions.total} that this run measured, {directions.same} have the same "
        f"direction here and {directions.opposite} the opposite one."
        f"{unclear if directions.unclear else ''}"
    )


def _other_dataset_agreement(measured: Measurements, directions: Directions) -> Agreement:
    name = NAMES.get(COUNTERPART.get(measured.dataset, ""), "another data set")
    headline = (
        f"{measured.title} is not the paper's {name}: "
        "no figure is compared with that of another data set."
    )
    note = f"The paper's figures for {name} are shown next to ours for orientation only."
    same = f"of {directions.total} differences in the direction the paper finds on {name}"
    tiles = (
        (str(directions.same), same, ""),
        (str(directions.opposite), "in the opposite direction", ""),
    )
    return Agreement(headline, (note, _direction_sentence(directions)), tiles)


def _placement_sentences(placed: Placements) -> list[str]:
    sentences = []
    if placed.outside:
        sentences.append(f"Outside: {joined([describe(key) for key in placed.outside])}.")
    elif placed.within:
        sentences.append("None of the measured figures is outside.")
    if placed.missing:
        sentences.append(f"Not measured: {joined([describe(key) for key in placed.missing])}.")
    return sentences
