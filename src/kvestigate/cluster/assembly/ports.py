"""Where a cluster listens, now and whenever it is started again."""

from __future__ import annotations

import socket
from random import Random

_LASTING = range(15_000, 32_000)
"""Below what systems lend to clients: who has borrowed a port cannot be told to give it back."""
_TRIES = 20


def lasting_port(address: str, random: Random) -> int:
    """A port that is free and likely to be free again later; 0, any one, if none is found."""
    for port in random.sample(_LASTING, _TRIES):
        try:
            with socket.create_server((address, port)):
                return port
        except OSError:  # somebody else's
            continue
    return 0
