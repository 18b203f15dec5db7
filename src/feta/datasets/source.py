"""Source: where a dataset's files come from, on what terms, and where they are on this machine."""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from feta.errors import DatasetError

FOLDER_VARIABLE = "FETA_DATA_DIR"


@dataclass(frozen=True, slots=True)
class Source:
    """One file at an address, its checksum (kind:digits) and terms.

    `members` are the files wanted from a zip; `stand_in` is a lesser file that a user's folder may have.
    """

    title: str
    folder: str
    file: str
    address: str
    checksum: str
    terms: str
    members: tuple[str, ...] = ()
    stand_in: str = ""


def find(source: Source) -> dict[str, bytes]:
    """Give the dataset's files by name: from the user's folder."""
    found = _in_folder(source)
    if found is None:
        raise DatasetError(f"{source.title} is not at hand")
    return found


def _in_folder(source: Source) -> dict[str, bytes] | None:
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise DatasetError(
            f"{FOLDER_VARIABLE} must name a folder, got {named!r}; correct or unset it"
        )
    folder = Path(named) / source.folder
    if source.members and all((folder / member).is_file() for member in source.members):
        return {member: (folder / member).read_bytes() for member in source.members}
    if (folder / source.file).is_file():
        return opened(source, folder / source.file)
    if source.stand_in and (folder / source.stand_in).is_file():
        return {source.stand_in: (folder / source.stand_in).read_bytes()}
    return None


def opened(source: Source, path: Path) -> dict[str, bytes]:
    """Read a file, or its members out of a zip."""
    if not source.members:
        return {source.file: path.read_bytes()}
    try:
        with zipfile.ZipFile(path) as archive:
            return {member: archive.read(member) for member in source.members}
    except (zipfile.BadZipFile, KeyError) as error:
        message = f"{path} must be a zip with {' and '.join(source.members)}: {error}"
        raise DatasetError(message) from error
