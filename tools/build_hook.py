"""Hatch runs this before it builds a wheel or installs a clone: it fetches the browser files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))


class BrowserAssets(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        from browser_assets import try_to_fetch

        try_to_fetch()
