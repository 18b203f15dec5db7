"""Tests that each finding is reported if and only if the measurements show it."""

from dataclasses import replace

from feta_paper.findings import findings
from feta_paper.measurements import Measurements


def run(dataset: str, rows: int = 86_000, **figures: list[float]) -> Measurements:
    figures_by_key = {key.replace("__", "."): values for key, values in figures.items()}
    return Measurements(dataset, "made up", 5, False, 0, rows, 6, figures_by_key)


def titles(measured: Measurements) -> list[str]:
    return [finding.title for finding in findings(measured)]


def words(measured: Measurements) -> dict[str, str]:
    return {finding.title: finding.words for finding in findings(measured)}


def test_raw_inputs_are_suspected_only_if_they_are_closer() -> None:
    far, near = [88.9] * 5, [82.7] * 5
    closer = run("law", nn_b__accuracy=far, raw__nn_b__accuracy=near)
    assert "Inputs were probably not scaled" in titles(closer)
    farther = run("law", nn_b__accuracy=far, raw__nn_b__accuracy=[74.0] * 5)
    assert "Scaling of the inputs" in titles(farther)
    assert titles(run("law", nn_b__accuracy=near, raw__nn_b__accuracy=far)) == []


def test_raw_inputs_that_worsen_other_figures_are_inconclusive() -> None:
    measured = run(
        "law",
        nn_b__accuracy=[88.9] * 5,
        raw__nn_b__accuracy=[83.5] * 5,
        nn_b__ce_rate=[41.0] * 5,
        raw__nn_b__ce_rate=[10.0] * 5,
    )
    assert "Scaling of the inputs: the figures are inconclusive" in titles(measured)


def test_the_gain_over_blind_is_compared_with_all_rows() -> None:
    title = "The gain over blind depends on the protocol"
    better = run("law", trained_vote__accuracy=[84.0, 84.2], blind_full__accuracy=[88.0, 88.1])
    worse = run("law", trained_vote__accuracy=[84.0, 84.2], blind_full__accuracy=[80.0, 80.1])
    unclear = run("law", trained_vote__accuracy=[84.0, 84.2], blind_full__accuracy=[84.1, 84.1])
    assert "the blind network is more accurate here" in words(better)[title]
    assert title not in titles(worse)
    assert "no difference shows here" in words(unclear)[title]


def test_figures_without_an_explanation_are_listed() -> None:
    last = findings(run("german", rows=1_000, nn_b__flip_rate=[20.0] * 5))[-1]
    assert last.title == "Unexplained"
    assert "flip rate of “NN_b, as trained” (20.00 ± 0.00; paper 8.90 ± 0.73)" in last.words
    assert titles(run("german", rows=1_000, nn_b__flip_rate=[8.9] * 5)) == []


def test_other_rows_are_reported_but_not_for_another_data_set() -> None:
    assert titles(run("law", rows=49_449)) == ["Other rows"]
    assert titles(run("adult", rows=45_222)) == []
    assert titles(run("german", rows=1_000)) == []
    assert titles(run("ipums", rows=45_850)) == []
    assert titles(run("ipums", rows=49_531)) == ["Other rows"]


def test_the_blind_network_s_subset_is_inferred_only_if_one_kind_fits() -> None:
    fits, misses = [70.3, 70.5], [60.0, 60.2]  # the paper: 70.30 ± 2.20

    def inferred(fixed: list[float], fresh: list[float], raw: list[float]) -> dict[str, str]:
        measured = run(
            "german",
            rows=1_000,
            blind_fixed__accuracy=fixed,
            blind_fresh__accuracy=fresh,
            raw__blind_fresh__accuracy=raw,
        )
        return words(measured)

    assert "Only the fixed subset" in inferred(fits, misses, misses)["The blind network's subset"]
    assert "Only the fresh subset" in inferred(misses, fits, misses)["The blind network's subset"]
    assert "suggests scaling" in inferred(misses, misses, fits)["The blind network"]
    assert "suggests scaling" not in inferred(misses, misses, misses)["The blind network"]
    assert inferred(fits, fits, misses) == {}


def test_the_counterparts_of_lcifr_are_reported_if_they_matter() -> None:
    title = "LCIFR's CE rate is over fewer counterparts"
    few = {"lcifr__ce_rate_categories": [0.1, 0.3]}
    assert titles(run("german", rows=1_000, **few, lcifr__ce_rate=[13.0, 14.0])) == [title]
    assert titles(run("german", rows=1_000, **few, lcifr__ce_rate=[0.1, 0.3])) == []


def test_lcifr_above_the_paper_is_compared_with_the_paper_s_majority_class() -> None:
    (finding,) = findings(run("german", rows=1_000, lcifr__accuracy=[76.0, 76.4]))
    assert finding.title == "LCIFR's accuracy"
    assert "its majority class (70.00 ± 1.78)" in finding.words
    (other,) = findings(run("ipums", rows=45_850, lcifr__accuracy=[76.0, 76.4]))
    assert "majority class" not in other.words
    assert titles(run("german", rows=1_000, lcifr__accuracy=[72.0, 72.4])) == []


def test_figures_without_a_deviation_are_compared_by_ours() -> None:
    (finding,) = findings(run("german", rows=1_000, lcifr_original__accuracy=[72.0, 72.2, 72.4]))
    assert finding.title.startswith("LCIFR with its authors'")
    assert "(72.20 ± 0.16; paper 75.53)" in finding.words
    assert titles(run("german", rows=1_000, lcifr_original__accuracy=[72.0, 75.0, 79.0])) == []
    assert titles(run("adult", rows=45_222, lcifr_original__accuracy=[72.0, 72.2])) == []


def test_an_incomplete_certificate_is_distinguished_from_a_ce_rate() -> None:
    title = "A share without a certificate is not a CE rate"
    shares = {
        "lcifr_original__certified": [51.0, 51.2],
        "lcifr_original__ce_rate_categories": [30.0, 30.2],
    }
    assert title in titles(run("law", 86_000, **shares))
    shares["lcifr_original__ce_rate_categories"] = [48.9, 48.9]
    assert title not in titles(run("law", 86_000, **shares))


def test_opposite_directions_are_reported() -> None:
    title = "Opposite direction to the paper"
    before, after = [30.0, 30.1, 30.2], [17.0, 17.1, 17.2]
    opposite = run("german", rows=1_000, nn_b__ce_rate=after, trained__ce_rate=before)
    assert title in titles(opposite)
    same = run("german", rows=1_000, nn_b__ce_rate=before, trained__ce_rate=after)
    assert title not in titles(same)


def test_ties_are_reported_if_decisions_differ() -> None:
    differing = run("german", rows=1_000, printed__treated_apart=[3.0, 0.0])
    assert "Algorithm 1 as printed is not fair on ties" in titles(differing)
    assert titles(run("german", rows=1_000, printed__treated_apart=[0.0, 0.0])) == []


def test_times_are_explained_only_if_they_are_shorter() -> None:
    times = {"vote.single_seconds": [1e-5], "forward.single_seconds": [5e-5]}
    fast = replace(run("german", rows=1_000), times=times)
    slow = replace(fast, times={"vote.single_seconds": [1.0], "forward.single_seconds": [1e-4]})
    assert titles(fast) == ["The times"]
    assert titles(slow) == []


def test_a_wide_spread_of_our_folds_may_be_chance() -> None:
    wide = run("german", rows=1_000, nn_b__flip_rate=[3.0, 4.0, 6.0, 10.0, 12.5])
    assert titles(wide) == ["May be chance"]
    narrow = run("german", rows=1_000, nn_b__flip_rate=[7.0, 7.1, 7.1, 7.1, 7.2])
    assert titles(narrow) == ["Unexplained"]


def test_a_rising_violation_is_reported() -> None:
    curves = {"trained.average_violation": [[0.5, 0.4, 0.9], [0.7, 0.6, 1.1]]}
    rising = replace(run("german", rows=1_000), curves=curves)
    falling = replace(rising, curves={"trained.average_violation": [[0.5, 0.6, 0.1]]})
    assert titles(rising) == ["The average violation does not fall"]
    assert titles(falling) == []
