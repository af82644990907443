"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says more of the machine's load than of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
