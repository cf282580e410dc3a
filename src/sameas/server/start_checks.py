"""What settings name and only looking shows, before a server or a worker opens anything.

Rule: a start that would fail at every request is refused, with the setting, what was found and what is wanted; what may
be all right by the time it is needed is said in the log.
"""

from __future__ import annotations

import logging

from sameas.extraction.extractors.embedded import find_weights
from sameas.server.runs.models import Models
from sameas.settings import PREFIX, Settings, SettingsError

_LOG = logging.getLogger("sameas.server")


def check_start(settings: Settings, *, asks_models: bool = True) -> None:
    """Refuse settings that cannot work on this machine; a server whose workers are elsewhere asks no models itself."""
    models = Models(settings)
    for name, variable in models.without_key:
        said = f"{name} answers nobody without a key, and none is set; set {variable}"
        if asks_models:
            raise SettingsError(f"{PREFIX}MODELS: {said}, or take the model out")
        _LOG.warning("%s where the workers are", said)
    for name in models.without_price:
        _LOG.warning(
            "the price of %s is not known: what it costs is not limited, its tokens are; name a file with its price in "
            "%sPRICES",
            *(name, PREFIX),
        )
    if settings.extractor == "reader" and find_weights() is None:
        raise SettingsError(
            f"{PREFIX}EXTRACTOR: it is 'reader', and the reader's weights are not installed here; install "
            "sameas[reader], or set lexicon"
        )
    archive = settings.archive_path
    if archive is not None and (archive.is_dir() or not archive.parent.is_dir()):
        raise SettingsError(f"{PREFIX}ARCHIVE: {archive} must be a file in a folder that is there")
