"""Pricing: a discrimination-free premium for generated drivers, next to a blind one.

Claims depend on sex, and women drive less powerful cars. A model without the column learns part of
the effect of sex from the power. The mean over both sexes, weighted by how often they occur, is the
discrimination-free price of Lindholm, Richman, Tsanakas and Wüthrich (ASTIN Bulletin, 2022).
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

import feta

rng = np.random.default_rng(3)
sex = rng.integers(0, 2, 2000)  # 1: a man
X = pd.DataFrame({"sex": sex, "power": np.clip(rng.normal(80 + 30 * sex, 15), 30, 200).round()})
claims = 100 + 2 * X.power + 120 * X.sex + rng.normal(0, 30, 2000)
space = feta.FeatureSpace(
    (feta.Integer("sex", 0, 1, sensitive=True), feta.Integer("power", 30, 200))
)

blind = LinearRegression().fit(X[["power"]], claims)
best = LinearRegression().fit(X, claims)
fair = feta.FairRegressor(LinearRegression(), space, vote="mean", weights="empirical")
fair.fit(X, claims)

cars = pd.DataFrame({"power": [60, 90, 120]})
for power, free, unaware in zip(cars.power, fair.predict(cars), blind.predict(cars), strict=True):
    own = best.predict(pd.DataFrame({"sex": [0, 1], "power": power}))
    print(f"{power} hp: women {own[0]:.0f}, men {own[1]:.0f}, free {free:.0f}, blind {unaware:.0f}")
slopes = {"free": np.diff(fair.predict(cars))[0] / 30, "blind": blind.coef_[0]}
print("one more hp costs", ", ".join(f"{slope:.2f} {name}" for name, slope in slopes.items()))
