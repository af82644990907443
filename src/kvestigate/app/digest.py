"""Apps and parts of them, told apart by a digest. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kvestigate.app.spec import AppSpec
from kvestigate.kube.documents import written


def spec_hash(spec: AppSpec) -> str:
    """64 hexadecimal digits: the same for Apps that say the same, in whatever order.

    What has its default does not count, so that a field that comes with a later version changes
    no digest. Contents of config files count, those of sources do not.
    """
    return digest(written(spec))


def digest(value: Any) -> str:
    """Of plain data; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
