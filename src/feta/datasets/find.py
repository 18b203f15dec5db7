"""Search for the files of a dataset: the user's folder, the cache, the published source."""

import os
import zipfile
from pathlib import Path

from feta.datasets.download import FOLDER_VARIABLE, fetch
from feta.datasets.source import DatasetSource
from feta.errors import DatasetError


def find(source: DatasetSource) -> dict[str, bytes]:
    """Return the dataset's files by name; files in the user's folder are used unchecked."""
    files = _read_folder(source)
    return _read_file(source, fetch(source)) if files is None else files


def _read_folder(source: DatasetSource) -> dict[str, bytes] | None:
    root = os.environ.get(FOLDER_VARIABLE)
    if not root:
        return None
    if not Path(root).is_dir():
        raise DatasetError(
            f"invalid {FOLDER_VARIABLE}: got {root!r}; expected a folder; correct or unset it"
        )
    folder = Path(root) / source.folder
    if source.members and all((folder / member).is_file() for member in source.members):
        return {member: (folder / member).read_bytes() for member in source.members}
    if (folder / source.file).is_file():
        return _read_file(source, folder / source.file)
    if source.stand_in and (folder / source.stand_in).is_file():
        return {source.stand_in: (folder / source.stand_in).read_bytes()}
    return None


def _read_file(source: DatasetSource, path: Path) -> dict[str, bytes]:
    """Read a file, or the members of a zip archive."""
    if not source.members:
        return {source.file: path.read_bytes()}
    try:
        with zipfile.ZipFile(path) as archive:
            return {member: archive.read(member) for member in source.members}
    except (zipfile.BadZipFile, KeyError) as error:
        raise DatasetError(
            f"{path}: damaged or wrong file: {error}; "
            f"expected a zip archive with {' and '.join(source.members)}"
        ) from error
