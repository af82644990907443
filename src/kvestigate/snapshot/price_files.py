"""Reading a file with prices."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kvestigate.errors import InputError
from kvestigate.snapshot.prices import Prices, read_prices

HELP: Final = "Prices of GPUs and power instead of the default ones: a YAML file."


def load_prices(name: str | Path) -> Prices:
    try:
        data = Path(name).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be read: {reason}", where=str(name), hint="docs/optimize.md shows an example"
        ) from error
    return read_prices(data, str(name))
