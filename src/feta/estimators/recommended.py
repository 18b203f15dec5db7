"""The recommended votes as defaults of scikit-learn's parameters.

scikit-learn accepts plain texts only. A default is therefore recognized by its identity, which
`clone` preserves, and `restore` recovers after unpickling.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from feta.vote.settings import EMPIRICAL, KEEP, MEAN_PROBABILITY, LevelName, WeightsName

if TYPE_CHECKING:
    from feta.vote.mean_decision import VoteName

# Texts of their own: no literal of a user is the same object.
VOTE: Final = cast("VoteName", "".join(list(MEAN_PROBABILITY)))
WEIGHTS: Final = cast("WeightsName", "".join(list(EMPIRICAL)))
LEVEL: Final = cast("LevelName", "".join(list(KEEP)))

DEFAULTS: Mapping[str, tuple[str, str]] = {
    "vote": (VOTE, MEAN_PROBABILITY),
    "weights": (WEIGHTS, EMPIRICAL),
    "level": (LEVEL, KEEP),
}


def marked(name: str, value: Any) -> Any:  # noqa: ANN401 - any parameter
    """Return a default as one that adapts to the model; other values as they are."""
    default, recommended = DEFAULTS[name]
    return recommended if value is default else value


def defaults_in(state: Mapping[str, Any]) -> list[str]:
    """Return the parameters that have their defaults."""
    return [name for name, (default, _) in DEFAULTS.items() if state.get(name) is default]


def restore(state: dict[str, Any], names: list[str]) -> None:
    """Put the defaults back into the parameters of an unpickled estimator."""
    state.update({name: DEFAULTS[name][0] for name in names})
