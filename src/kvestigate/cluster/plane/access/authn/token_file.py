"""Static bearer tokens in a file, one per line: `token,user,uid,"group1,group2"`.

The format of kube-apiserver's `--token-auth-file`. In place of a token its hash may stand,
`sha256:` and 64 hexadecimal digits, so that a reader of the file cannot use the tokens.
"""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

from kvestigate.cluster.plane.model.user import AUTHENTICATED, User
from kvestigate.errors import InputError

_HASHED = "sha256:"
_HASH = re.compile("[0-9a-f]{64}")
_HINT = 'write token,user,uid,"group1,group2"; uid and groups may be left out'


def digest(token: str) -> str:
    """The form in which the server keeps tokens: sha256 in hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> dict[str, User]:
    """The users of a file by the hash of their token."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file cannot be read: {error}", where=str(path)) from error
    return parse_tokens(text, source=str(path))


def parse_tokens(text: str, *, source: str) -> dict[str, User]:
    users: dict[str, User] = {}
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    for row in lines:
        if not row or row[0].startswith("#"):
            continue
        where = f"{source}:{lines.line_num}"
        if len(row) < 2 or not row[0] or not row[1]:
            raise InputError("a line needs at least a token and a user", where=where, hint=_HINT)
        key = _key(row[0].strip(), where)
        if key in users:
            # Which of the two users it means must not depend on their order.
            raise InputError("the same token is on an earlier line", where=where)
        uid = row[2].strip() if len(row) > 2 else ""
        groups = [group.strip() for group in row[3].split(",")] if len(row) > 3 else []
        users[key] = User(row[1].strip(), (*filter(None, groups), AUTHENTICATED), uid)
    return users


def _key(token: str, where: str) -> str:
    if not token.startswith(_HASHED):
        return digest(token)
    hashed = token.removeprefix(_HASHED).lower()
    if not _HASH.fullmatch(hashed):
        raise InputError(
            "sha256: is not followed by 64 hexadecimal digits",
            where=where,
            hint="printf %s TOKEN | sha256sum prints them",
        )
    return hashed
