"""All kinds of models; to add one, add it to the list of its file."""

from tests.kinds import boosted, estimators, files, networks

KINDS = (*boosted.KINDS, *estimators.KINDS, *networks.KINDS, *files.KINDS)
