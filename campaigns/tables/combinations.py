"""The full product of combinations, and the reason for each one that is left out."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from campaigns.tables.contents import CONTENTS, Content, CsvReading, File, is_missing
from campaigns.tables.encoders import ENCODERS

IMPUTERS = ("frequent-onehot", "constant-onehot", "median-scaler")


@dataclass(frozen=True, slots=True)
class Combination:
    """One row of the product; `number` seeds its table."""

    number: int
    content: Content
    encoder: str
    file: File
    reading: CsvReading
    sensitive: bool

    @property
    def name(self) -> str:
        """The name that `--only` matches."""
        role = "sensitive" if self.sensitive else "shared"
        return f"{self.content.name}/{self.encoder}/{self.file}/{self.reading}/{role}"

    @property
    def left_out(self) -> str:
        """The reason to leave it out, or an empty text; scikit-learn may refuse it as well."""
        if reason := self.content.left_out.get(self.file):
            return reason
        if self.reading == "options" and self.file != "csv":
            return "reading options belong to CSV files"
        if self.reading == "options" and not self.content.options:
            return "pandas' defaults give this content"
        if self.reading == "defaults" and self.file == "csv" and self.content.sep != ",":
            return "pandas' defaults do not separate the columns of this file"
        if other := self._same_file():
            return f"the same file, read in the same way, as {other}"
        if self.encoder in IMPUTERS and not any(map(is_missing, self.content.values)):
            return "nothing is missing: the imputer does nothing"
        return ""

    def _same_file(self) -> str:
        """Name the earlier content that has the same CSV file."""
        if (self.file, self.reading) != ("csv", "defaults"):
            return ""
        for content in CONTENTS:
            if content.name == self.content.name:
                return ""
            if content.spellings == self.content.spellings and "csv" not in content.left_out:
                return content.name
        return ""


FILES: tuple[File, ...] = ("csv", "parquet", "frame")
READINGS: tuple[CsvReading, ...] = ("defaults", "options")


def combinations() -> Iterator[Combination]:
    """List the full product."""
    full_product = product(CONTENTS, ENCODERS, FILES, READINGS, (True, False))
    for number, (content, encoder, file, reading, sensitive) in enumerate(full_product):
        yield Combination(number, content, encoder, file, reading, sensitive)
