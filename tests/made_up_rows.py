"""Invented rows in the formats of the datasets that are not in the package."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd

from feta.datasets.source import DatasetSource

ADULT_DATA = b"""\
41, Private, 1000, HS-grad, 9, Divorced, Sales, Unmarried, Black, Female, 0, 0, 40, Jamaica, <=50K
90, State-gov, 1001, Masters, 14, Widowed, Prof-specialty, Not-in-family, White, Male, \
99999, 0, 99, Cuba, >50K
30, ?, 1002, 10th, 6, Separated, ?, Own-child, Other, Male, 0, 0, 20, Peru, <=50K

"""
ADULT_TEST = b"""\
|1x3 Cross validator
17, Without-pay, 1003, 12th, 8, Never-married, Sales, Own-child, White, Female, \
0, 4356, 1, Hong, <=50K.
52, Local-gov, 1004, Doctorate, 16, Married-civ-spouse, Tech-support, Wife, Other, Female, \
0, 0, 45, India, >50K.

"""
IPUMS = b"""\
hours-per-week,age,capital-gain,capital-loss,workclass,education,education-num,marital-status,relationship,race,gender,native-country,occupation,income
40,41,0,0,Private,HS-grad,9,Divorced,Unmarried,Black,Female,Jamaica,Sales,30000
99,90,500,0,State-gov,Masters,14,Widowed,Not-in-family,White,Male,Cuba,Prof-specialty,30001
20,30,0,0,?,10th,6,Separated,Own-child,Other,Male,Peru,?,90000
20,22,0,0,Private,10th,6,Separated,Own-child,Other,Male,?,Sales,90000
"""
LAW_PART = """\
\ufeffLSAT,GPA,Race,resident,college,Year,Gender,admit,Black,Hispanic,Asian,White,MissingRace,URM,enroll
150,3.25,Black,1,Wyoming,200x,0,1,1,0,0,0,0,1,1
184,4,White,0,Hawaii,2005,1,0,0,0,0,1,0,0,
160,3.5,Asian,0,Hawaii,2005,1,1,0,0,1,0,0,0,0
160,3.5, ,0,Hawaii,2005,1,1,0,0,0,0,1,0,0
160,,White,0,Hawaii,2005,1,1,0,0,0,1,0,0,0
160,3.5,White,0,Hawaii,2005,,1,0,0,0,1,0,0,0
160,3.5,White,0,Hawaii,2005,1,,0,0,0,1,0,0,0
121,2.75,Hispanic,0,Ohio State,2008,1,1,0,1,0,0,0,1,
""".encode()


def adult_zip() -> bytes:
    """Return UCI's archive, with a file that is not used."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Index", "nothing")
        archive.writestr("adult.data", ADULT_DATA)
        archive.writestr("adult.test", ADULT_TEST)
    return buffer.getvalue()


def law_stata() -> bytes:
    """Return the rows of LAW_PART as a Stata file: float32 numbers, unknown race as empty text."""
    table = pd.read_csv(io.BytesIO(LAW_PART), dtype={"Year": str}, encoding="utf-8-sig")
    table.columns = table.columns.str.lower()
    table["race"] = table["race"].str.strip()
    numbers = table.select_dtypes("number").columns
    table = table.astype(dict.fromkeys(numbers, np.float32))
    buffer = io.BytesIO()
    table.to_stata(buffer, write_index=False)
    return buffer.getvalue()


def with_content(source: DatasetSource, address: str, content: bytes) -> DatasetSource:
    """Return the source with another address and the checksum of this content."""
    return replace(source, address=address, checksum=source.checksum_of(content))
