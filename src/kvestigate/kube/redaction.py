"""Secrets as something that can be compared and not used, and texts without them. Pure.

`masked_words` and `masked_text` are for what people type: commands, scripts, messages. A secret
has no form of its own, so its neighbours give it away: the name before `=` or `:`, the option
before it, `Authorization`, the part of a URL before `@`. A word is masked to its end and not
further, so that `sh -c "TOKEN=x rm -rf /data"` still says what was done. Words are found as a
shell finds them; what is in quotes is looked at again as a text of its own. All is linear in the
length of the text, whoever wrote it.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import re
from collections.abc import Sequence

MASKED = "***"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|authorization|cookie|from-literal"
    r"|(api|access|account|encryption|license|private|shared|signing|ssh)[_-]?key"
    r"|(^|[._-])(auth|dsn|otp|pass(in|out)?|pat|pwd|sas|sig|signature|webhook)$|sshpass$",
    re.I,
)


def fingerprint(secret: str | bytes) -> str:
    """`sha256:1f3a09b2c4d5`: equal for equal secrets.

    For keys, tokens and certificates only: what people think up could be guessed from it.
    """
    data = secret.encode() if isinstance(secret, str) else secret
    return f"sha256:{hashlib.sha256(data).hexdigest()[:12]}"


def sized(encoded: object) -> str:
    """`(12 bytes)`: all that is told of a value in a Secret's `data`."""
    try:
        return f"({len(base64.b64decode(str(encoded), validate=True))} bytes)"
    except (ValueError, binascii.Error):
        return "(hidden)"


def names_a_secret(name: str) -> bool:
    """Whether a variable of that name probably holds one: `DB_PASSWORD`, `API_KEY`."""
    return _SECRET_NAME.search(name) is not None


def masked_text(text: str) -> str:
    """A script, a message or a URL without the secrets in it."""
    return _Masking().text(text)


def masked_words(words: Sequence[str]) -> list[str]:
    """A command without the secrets in it, word for word."""
    masking = _Masking()
    return [masking.argument(word) for word in words]


_DEEPEST = 6
"""Quotes within quotes that are looked into; deeper ones are masked as a whole."""
_WORDS = re.compile(
    r"""(?P<space>\s++)|(?:"(?:\\.|[^"\\]|\\\Z)*+(?:"|\Z)|'[^']*+(?:'|\Z)|\\.|\\\Z|[^\s"'\\])++""",
    re.S,
)
_NAMED = re.compile(r"""(?<![\w.-])([\w.-]++)(?:[\\"'+\])]*+[:=]|[\\"']++,)""")
"""`NAME=`, `"name":`, `environ['NAME']=`, `setdefault("NAME",`"""
_BEFORE_HOST = re.compile(r"""(?<=://)[^\s/?#"']*@""")
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----).*", re.S)
_TOKEN_SHAPE = re.compile(
    r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|nvapi-|pypi-|r8_|sk-|xapp-|xox[abprs]-|AIza|AKIA"
    r"|eyJ[\w-]{8,64}\.|hooks\.slack\.com/services/)[\w./-]{8,}"
)
_ACCOUNT_OPTIONS = ("-u", "-U", "--user", "--proxy-user")
"""Of curl and its like: `user:password` follows, or `user%password`."""
_ACCOUNT = re.compile(r"[^:%]*+[:%]")
_PASSWORD_OPTIONS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mongo", "mongosh"), "-p"),
    **dict.fromkeys(("docker", "podman", "sshpass", "7z"), "-p"),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify"), "-w"),
    **dict.fromkeys(("unzip", "zip"), "-P"),
    "curl": "-b",
    "openssl": "-k",
    "redis-cli": "-a",
    "ssh-keygen": "-N",
}
_OTHER_MEANING = frozenset(("mkdir", "cp", "install", "scp", "rsync", "tar", "ps", "git"))
"""Programs whose `-p` is followed by no password."""
_SETTERS = frozenset(("set", "setenv", "-x", "-gx"))
"""`set NAME VALUE`, as shells and programs' settings have it."""
_LOGINS = frozenset(("vault", "wandb"))
"""Programs that take a token after `login`."""
_BLOCK = frozenset(("|", "|-", "|+", ">", ">-", ">+"))
"""A value in YAML that begins on the next line."""
_PORT = re.compile(r"[\d.:]+(/\w+)?")
_OPTION = re.compile(r"--?[\w.-]+")
_SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c")


class _Next(enum.Enum):
    """What the words so far say of the next one."""

    NOTHING = "nothing"
    SECRET = "secret"
    ACCOUNT = "account"
    """`user:password`"""
    PASSWORD_OR_PORT = "password or port"
    ALL_SECRET = "all secret"
    """The header `Authorization: Basic dXNlcg==` has more than one."""


class _Masking:
    """Goes over the words of one text."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._next = _Next.NOTHING
        self._last = ""
        self._password_option = ""
        """Of a program that was named before."""
        self._password_or_port = True

    def text(self, text: str) -> str:
        text = _KEY_BLOCK.sub(rf"\1{MASKED}", text)
        return "".join(
            found[0] if found["space"] else self._word(found[0]) for found in _WORDS.finditer(text)
        )

    def argument(self, word: str) -> str:
        """A word of a command may have blanks in it without any quotes."""
        if not any(map(str.isspace, word)) or self._next is not _Next.NOTHING:
            return self._word(word)
        before, self._last = self._last, word
        return self._inside(word, before)

    def _word(self, word: str) -> str:
        expected, before, bare = self._next, self._last, word.strip("\"'")
        if expected is _Next.SECRET and bare in _BLOCK:
            return word
        self._next = self._after(bare)
        self._last = bare
        match expected:
            case _Next.ALL_SECRET:
                self._next = _Next.ALL_SECRET
                return MASKED
            case _Next.SECRET:
                return MASKED
            case _Next.PASSWORD_OR_PORT if not _PORT.fullmatch(bare):
                return MASKED
            case _Next.ACCOUNT if found := _ACCOUNT.match(word):
                return f"{found[0]}{MASKED}"
        if any(map(str.isspace, bare)) and word != bare:
            return self._quoted(word, before)
        program = bare.rpartition("/")[2]
        self._password_option = _PASSWORD_OPTIONS.get(program, self._password_option)
        self._password_or_port = self._password_or_port and program not in _OTHER_MEANING
        return self._shown(word)

    def _quoted(self, word: str, before: str) -> str:
        """A text of its own, alone or behind something: `-H"Authorization: Bearer x"`."""
        quote = next(character for character in word if character in "\"'")
        start, _, inner = word.partition(quote)
        inner, end = (inner[:-1], quote) if inner.endswith(quote) else (inner, "")
        if any(names_a_secret(named[1]) for named in _NAMED.finditer(start)):
            return self._shown(word)
        return f"{self._shown(start)}{quote}{self._inside(inner, before)}{end}"

    def _inside(self, text: str, before: str) -> str:
        """A variable with blanks in its value, or a script, which follows `-c`."""
        name, equals, _ = text.partition("=")
        variable = equals and not any(map(str.isspace, name)) and names_a_secret(name)
        if variable and not _SCRIPT_OPTION.fullmatch(before):
            return f"{name}={MASKED}"
        return _Masking(self._depth + 1).text(text) if self._depth < _DEEPEST else MASKED

    def _shown(self, word: str) -> str:
        """What gives itself away is masked from there to the end of the word."""
        word = _TOKEN_SHAPE.sub(MASKED, _BEFORE_HOST.sub(f"{MASKED}@", word))
        for named in _NAMED.finditer(word):
            if names_a_secret(named[1]) and named.end() < len(word):
                return f"{word[: named.end()]}{MASKED}"
        account, colon, _ = word.partition(":")
        if colon and account.startswith(("-u", "--user=", "--proxy-user=")):
            return f"{account}:{MASKED}"
        option = self._password_option
        if option and word.startswith(option) and word != option:
            return f"{option}{MASKED}"
        return word

    def _after(self, bare: str) -> _Next:
        if bare.endswith((":", "=")):
            name = bare[:-1].rstrip("\"'") or self._last
            if names_a_secret(name):
                whole = name.lower().endswith(("authorization", "cookie"))
                return _Next.ALL_SECRET if whole else _Next.SECRET
        if bare.lower().endswith("bearer") or (bare == "login" and self._last in _LOGINS):
            return _Next.SECRET
        if names_a_secret(bare.rstrip("\"',")) and (
            self._last in _SETTERS or bare.endswith(("',", '",'))
        ):
            return _Next.SECRET
        if not _OPTION.fullmatch(bare):
            return _Next.NOTHING
        if names_a_secret(bare) or bare == self._password_option:
            return _Next.SECRET
        if bare in _ACCOUNT_OPTIONS:
            return _Next.ACCOUNT
        if bare == "-p" and self._password_or_port:
            return _Next.PASSWORD_OR_PORT
        return _Next.NOTHING
