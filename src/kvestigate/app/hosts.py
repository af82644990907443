"""An App on hosts: a workspace a shard, filled, and the program started in it."""

from __future__ import annotations

from pathlib import Path

from kvestigate.app.model import Step
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access


async def up(access: Access, spec: AppSpec, directory: Path, *, apply: bool) -> tuple[Step, ...]:
    raise NotImplementedError


async def down(access: Access, spec: AppSpec, *, apply: bool) -> tuple[Step, ...]:
    raise NotImplementedError
