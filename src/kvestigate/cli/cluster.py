"""From global options to the cluster they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kvestigate.cli.options import GlobalOptions

if TYPE_CHECKING:
    from kvestigate.client.access import Access


def access_of(options: GlobalOptions) -> Access:
    """The access that flags, environment and kubeconfig files mean together."""
    from kvestigate.client.access import resolve

    return resolve(options.access(), os.environ, _home())


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None
