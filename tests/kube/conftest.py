"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says more of the machine's load than of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
