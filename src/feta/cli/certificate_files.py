"""The certificate of `feta audit`, if one is wanted; otherwise an older one is removed."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock
from feta.auditing.certify import Certification, CertifiedFacts, remove_certificate
from feta.cli.sign import sign_certificate
from feta.io.signing_key import SigningKey
from feta.readers.load import LoadedModel

if TYPE_CHECKING:
    from feta.cli.audit import AuditOptions


class CertificateFiles:
    """Writer of the certificate of an audit with or without `--certify`."""

    def __init__(
        self, auditor: Auditor, loaded: LoadedModel, options: "AuditOptions", data_sha256: str
    ) -> None:
        self._options, self._auditor = options, auditor
        with_model = not options.without_model
        self._facts = CertifiedFacts(data_sha256, loaded.options, with_model=with_model)
        self._stack = ExitStack()
        self._certification: Certification | None = None

    def __enter__(self) -> Self:
        folder = self._options.out
        if self._options.certify and folder is not None:
            certification = Certification(folder, self._auditor, self._facts)
            self._certification = self._stack.enter_context(certification)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, audited: AuditedBlock) -> None:
        """Add the claims about one block."""
        if self._certification is not None:
            self._certification.write(audited)

    def append(self, part: Path) -> None:
        """Add the claims about a part of the rows, which are in a file."""
        if self._certification is not None:
            self._certification.append(part)

    def seal(self, *, complete: bool) -> str:
        """Seal the certificate; return its id, or an empty text if none is wanted."""
        return "" if self._certification is None else self._certification.seal(complete=complete)

    def finish(self) -> None:
        """Put the sealed certificate in its place."""
        if self._certification is not None:
            self._certification.publish()
            if self._options.sign is not None:
                sign_certificate(self._certification.folder, SigningKey.read(self._options.sign))
        elif self._options.out is not None:
            remove_certificate(self._options.out)
