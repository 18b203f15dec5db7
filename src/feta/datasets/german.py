"""German credit: 1,000 loan files, good or bad risk (Statlog, UCI, CC BY 4.0, doi 10.24432/C5NC77).

The bundled file is UCI's; its codes are replaced with the words of UCI's documentation.
"""

import hashlib
import io
from importlib.resources import files

import pandas as pd

from feta.datasets.dataset import Dataset
from feta.errors import SchemaError
from feta.space.attribute import Attribute, Categorical, Integer
from feta.space.feature_space import FeatureSpace

SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"

# The limits of integers are those of the file. Codes that never occur (A47, A95) are left out,
# which results in the 61 inputs and 456 counterparts of the paper.
COLUMNS: dict[str, tuple[int, int] | dict[str, str]] = {
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "none",
    },
    "duration_months": (4, 72),
    "credit_history": {
        "A30": "no credits taken",
        "A31": "all paid back at this bank",
        "A32": "existing ones paid so far",
        "A33": "delays in the past",
        "A34": "critical account",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "household appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "others",
    },
    "amount_dm": (250, 18424),
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employed_since": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "installment_percent": (1, 4),
    "personal_status": {
        "A91": "male, divorced or separated",
        "A92": "female, divorced, separated or married",
        "A93": "male, single",
        "A94": "male, married or widowed",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence_since": (1, 4),
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "age": (19, 75),
    "other_installments": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "existing_credits": (1, 4),
    "job": {
        "A171": "unskilled, non-resident",
        "A172": "unskilled, resident",
        "A173": "skilled",
        "A174": "management or self-employed",
    },
    "dependants": (1, 2),
    "telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}
SENSITIVE = ("age", "personal_status", "foreign_worker")


def load_german() -> Dataset:
    """Load the bundled file; a good risk is favorable."""
    content = files("feta.datasets").joinpath("german.data").read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SchemaError("the bundled German credit file is damaged; install the package again")
    table = pd.read_csv(io.BytesIO(content), sep=" ", header=None, names=[*COLUMNS, "risk"])
    for name, domain in COLUMNS.items():
        if isinstance(domain, dict):
            table[name] = table[name].map(domain)
    return Dataset(
        name="german",
        title="German credit",
        source="Statlog German credit data, UCI, CC BY 4.0, doi 10.24432/C5NC77",
        frame=table.drop(columns="risk"),
        labels=(table["risk"] == 1).to_numpy(),
        space=FeatureSpace(tuple(_attribute(name) for name in COLUMNS)),
        favorable="APPROVED",
        unfavorable="REFUSED",
    )


def _attribute(name: str) -> Attribute:
    domain = COLUMNS[name]
    if isinstance(domain, dict):
        return Categorical(name, tuple(domain.values()), name in SENSITIVE)
    return Integer(name, *domain, sensitive=name in SENSITIVE)
