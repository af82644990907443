"""Fetches the third-party files that the console ships: pinned by version and by hash.

Runs when the package is built or installed from a clone. The registry is the
one that npm is configured for. A registry that is away is no failure: the console works without.
Nothing but the standard library is needed, and nothing that is fetched is ever run here.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

CONSOLE = Path(__file__).parents[1] / "src" / "kvestigate" / "console"
MANIFEST = CONSOLE / "browser_assets.json"
TARGET = CONSOLE / "static" / "third_party"

_SECONDS = 20
_LARGEST = 64 * 1024 * 1024


def fetch(manifest: Path = MANIFEST, target: Path = TARGET) -> None:
    """Put every file of the manifest into `target`; those with the right hash stay as they are."""
    registry = ""
    for package in json.loads(manifest.read_text()):
        missing = [file for file in package["files"] if not _is_there(target / file["name"], file)]
        if missing:
            registry = registry or registry_of(os.environ)
            _unpack(_archive(registry, package), missing, target)


def registry_of(environ: Any) -> str:
    """The registry that npm would use; ValueError if nothing says which."""
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if environ.get(name):
            return str(environ[name]).rstrip("/")
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm:
        asked = subprocess.run(
            [npm, "config", "get", "registry"],
            capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if asked.returncode == 0 and asked.stdout.strip().startswith("http"):
            return asked.stdout.strip().rstrip("/")
    raise ValueError("there is no npm to ask for its registry; set NPM_CONFIG_REGISTRY")


def _archive(registry: str, package: dict[str, Any]) -> bytes:
    """The package as npm has it; ValueError if it is another one than was pinned."""
    name, version = package["package"], package["version"]
    url = f"{registry}/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
    with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
        data: bytes = answer.read(_LARGEST)
    if _digest("sha512", data) != package["sha512"]:
        raise ValueError(f"{name} {version} does not have the pinned hash")
    return data


def _unpack(archive: bytes, files: list[dict[str, str]], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for file in files:
            member = tar.extractfile(f"package/{file['path']}")
            data = member.read() if member is not None else b""
            if _digest("sha384", data) != file["sha384"]:
                raise ValueError(f"{file['path']} does not have the pinned hash")
            (target / file["name"]).write_bytes(data)


def _is_there(path: Path, file: dict[str, str]) -> bool:
    return path.is_file() and _digest("sha384", path.read_bytes()) == file["sha384"]


def _digest(algorithm: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(algorithm, data).digest()).decode()


def try_to_fetch(manifest: Path = MANIFEST, target: Path = TARGET) -> bool:
    """Fetch; if that fails, say so and go on."""
    try:
        fetch(manifest, target)
    except (OSError, ValueError, tarfile.TarError, KeyError, subprocess.SubprocessError) as error:
        print(
            f"warning: the console's browser files were not fetched ({error}); it works without, "
            "but pages do not refresh themselves",
            file=sys.stderr,
        )
        return False
    return True


if __name__ == "__main__":
    paths = [Path(word) for word in sys.argv[1:3]]
    sys.exit(0 if try_to_fetch(*paths) else 1)
