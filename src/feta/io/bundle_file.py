"""Bundles: ZIP archives with equal bytes for equal files, and a manifest of their digests."""

import hashlib
import shutil
import zipfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from feta.io.envelope import ABOUT_BUNDLE, statement
from feta.progress import Advance

MANIFEST, SIGNED_MANIFEST = "manifest.json", "manifest.dsse.json"

# The earliest time of the format; files of an archive have no other.
TIME = (1980, 1, 1, 0, 0, 0)
MODE = 0o644
UNIX = 3
LEVEL = 6

# A file of the archive: its path, or its content.
Content = Path | bytes


def write_bundle(
    path: Path,
    files: Mapping[str, Content],
    *,
    seal: str,
    sign: Callable[[bytes], bytes] | None,
    advance: Advance,
) -> None:
    """Write the archive: the files by name, the manifest, and its signature if there is a key."""
    digests: dict[str, str] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for count, (name, content) in enumerate(sorted(files.items())):
            digests[name] = _add(archive, name, content)
            advance((count + 1) / len(files))
        manifest = statement(ABOUT_BUNDLE, digests, {"feta": version("feta-fair"), "seal": seal})
        _add(archive, MANIFEST, manifest)
        if sign is not None:
            _add(archive, SIGNED_MANIFEST, sign(manifest))


def _add(archive: zipfile.ZipFile, name: str, content: Content) -> str:
    """Add a file; return its SHA-256."""
    info = zipfile.ZipInfo(name, TIME)
    info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, UNIX
    info.external_attr = MODE << 16
    if isinstance(content, bytes):
        archive.writestr(info, content)
        return hashlib.sha256(content).hexdigest()
    info.file_size = content.stat().st_size
    with content.open("rb") as source, archive.open(info, "w") as target:
        written = _Hashed(target)
        shutil.copyfileobj(source, written, 2**20)
    return written.digest.hexdigest()


class _Hashed:
    """A stream that computes the digest of what is written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.digest: Any = hashlib.sha256()  # its type has no public name

    def write(self, content: bytes) -> int:
        """Write bytes."""
        self.digest.update(content)
        return self.stream.write(content)


def checker_files() -> dict[str, Content]:
    """Return the source files of the independent checker, which is found but not imported."""
    spec = find_spec("feta_check")
    assert spec is not None  # it is part of this distribution
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    return {f"{folder.name}/{path.name}": path for path in sorted(folder.glob("*.py"))}
