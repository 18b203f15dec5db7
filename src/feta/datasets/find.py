"""Find: a dataset's files in the user's own folder, in the cache, or at their source."""

import os
import zipfile
from pathlib import Path

from feta.datasets.download import FOLDER_VARIABLE, fetch
from feta.datasets.source import DatasetSource
from feta.errors import DatasetError


def find(source: DatasetSource) -> dict[str, bytes]:
    """Give the dataset's files by name; a user's own folder comes first, and is taken as it is."""
    found = _in_folder(source)
    return _opened(source, fetch(source)) if found is None else found


def _in_folder(source: DatasetSource) -> dict[str, bytes] | None:
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        message = f"{FOLDER_VARIABLE} must name a folder, got {named!r}; correct or unset it"
        raise DatasetError(message)
    folder = Path(named) / source.folder
    if source.members and all((folder / member).is_file() for member in source.members):
        return {member: (folder / member).read_bytes() for member in source.members}
    if (folder / source.file).is_file():
        return _opened(source, folder / source.file)
    if source.stand_in and (folder / source.stand_in).is_file():
        return {source.stand_in: (folder / source.stand_in).read_bytes()}
    return None


def _opened(source: DatasetSource, path: Path) -> dict[str, bytes]:
    """Read a file, or its members out of a zip."""
    if not source.members:
        return {source.file: path.read_bytes()}
    try:
        with zipfile.ZipFile(path) as archive:
            return {member: archive.read(member) for member in source.members}
    except (zipfile.BadZipFile, KeyError) as error:
        message = f"{path} must be a zip with {' and '.join(source.members)}: {error}"
        raise DatasetError(message) from error
