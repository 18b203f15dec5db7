from feta.train.selection import nearest_to_ideal, undominated


def test_the_first_point_nearest_to_the_ideal_is_chosen() -> None:
    assert nearest_to_ideal([(0.9, 0.5), (0.7, 0.1), (0.8, 0.3)]) == 1
    assert nearest_to_ideal([(0.75, 0.25), (0.75, 0.25), (0.5, 0.0)]) == 0
    assert nearest_to_ideal([(1.0, 0.4), (0.6, 0.0)]) == 0  # both 0.4 away


def test_the_pareto_front_contains_the_undominated_points() -> None:
    points = [(0.9, 0.5), (0.7, 0.1), (0.7, 0.2), (0.6, 0.1), (0.9, 0.5)]
    assert undominated(points) == [0, 1, 4]
