"""The rules for names, labels and keys, and the sentences an API server answers with.

Every `*_problems` function returns what is wrong with a value, in the server's own words
because API users see, search for and match them; an empty list means the value is fine.
Lengths count UTF-8 bytes, as the server does.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from random import Random
from typing import Final

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_DOMAIN = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_matches_label = re.compile(_LABEL).fullmatch
_matches_subdomain = re.compile(_SUBDOMAIN).fullmatch
_matches_search_domain = re.compile(_SEARCH_DOMAIN).fullmatch
_matches_label_1035 = re.compile(_LABEL_1035).fullmatch
_matches_qualified = re.compile(_QUALIFIED).fullmatch
_matches_key = re.compile(f"(?:{_SUBDOMAIN}/)?{_QUALIFIED}").fullmatch
_matches_label_value = re.compile(_LABEL_VALUE).fullmatch
_matches_config_key = re.compile(_CONFIG_KEY).fullmatch
_SAFE_CONFIG_KEY = "[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}+"
_match_config_keys = re.compile(f"{_SAFE_CONFIG_KEY}(?:\n{_SAFE_CONFIG_KEY})*").fullmatch
_matches_port_charset = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_matches_printable_but_equals = re.compile("[ -<>-~]*").fullmatch

LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
PORT_NAME_MAX: Final = 15

_GENERATED_MAX: Final = 63
_GENERATED_SUFFIX: Final = 5
# No vowels, so that no words come out, and no digits that look like letters.
_GENERATED_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def _pattern_problem(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_NOT_A_LABEL = _pattern_problem(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_NOT_A_SUBDOMAIN = _pattern_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_NOT_A_SEARCH_DOMAIN = _pattern_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'_', '-' or '.', and must start and end with an alphanumeric character",
    _SEARCH_DOMAIN,
    "example.com",
)
_NOT_A_WILDCARD = _pattern_problem(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
    "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
    "character",
    rf"\*\.{_SUBDOMAIN}",
    "*.example.com",
)
_NOT_A_LABEL_1035 = _pattern_problem(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_NOT_QUALIFIED = _pattern_problem(
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_NOT_A_LABEL_VALUE = _pattern_problem(
    "a valid label must be an empty string or consist of alphanumeric characters, "
    "'-', '_' or '.', and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_NOT_A_CONFIG_KEY = _pattern_problem(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


# Every write checks many names, and nearly all are short and fine: those are told first.


def label_problems(value: str) -> list[str]:
    """RFC 1123 label: names of namespaces, containers and volumes."""
    if len(value) <= LABEL_MAX and _matches_label(value):
        return []
    problems = _too_long(value, LABEL_MAX)
    if not _matches_label(value):
        dotted = _matches_subdomain(value)
        problems.append("must not contain dots" if dotted else _NOT_A_LABEL)
    return problems


def subdomain_problems(value: str) -> list[str]:
    """RFC 1123 subdomain: names of most objects."""
    if len(value) <= SUBDOMAIN_MAX and _matches_subdomain(value):
        return []
    problems = _too_long(value, SUBDOMAIN_MAX)
    if not _matches_subdomain(value):
        problems.append(_NOT_A_SUBDOMAIN)
    return problems


def search_domain_problems(value: str) -> list[str]:
    """A subdomain in a resolver's search list, where underscores are common."""
    problems = _too_long(value, SUBDOMAIN_MAX)
    if not _matches_search_domain(value):
        problems.append(_NOT_A_SEARCH_DOMAIN)
    return problems


def wildcard_problems(value: str) -> list[str]:
    """`*.example.com`: the host of an Ingress rule."""
    problems = _too_long(value, SUBDOMAIN_MAX)
    if not value.startswith("*.") or not _matches_subdomain(value[2:]):
        problems.append(_NOT_A_WILDCARD)
    return problems


def label_1035_problems(value: str) -> list[str]:
    """RFC 1035 label: a DNS label that starts with a letter, as names of Services must."""
    problems = _too_long(value, LABEL_MAX)
    if not _matches_label_1035(value):
        problems.append(_NOT_A_LABEL_1035)
    return problems


def qualified_name_problems(value: str) -> list[str]:
    """`name` or `example.com/name`: keys of labels and annotations, names of resources."""
    if len(value) <= LABEL_MAX and _is_key(value):
        return []
    prefix, slash, name = value.partition("/")
    if not slash:
        prefix, name = "", value
    elif "/" in name:
        return [
            f"a valid label key {_NOT_QUALIFIED} "
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = _prefix_problems(prefix) if slash else []
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {text}" for text in _too_long(name, LABEL_MAX, "bytes")]
    if not _matches_qualified(name):
        problems.append(f"name part {_NOT_QUALIFIED}")
    return problems


# The same few keys are on every object.
@lru_cache(maxsize=4096)
def _is_key(value: str) -> bool:
    return bool(_matches_key(value))


def label_value_problems(value: str) -> list[str]:
    """The value of a label: may be empty."""
    if len(value) <= LABEL_MAX and _matches_label_value(value):
        return []
    problems = _too_long(value, LABEL_MAX, "bytes")
    if not _matches_label_value(value):
        problems.append(_NOT_A_LABEL_VALUE)
    return problems


def path_segment_problems(value: str) -> list[str]:
    """What any object's name must satisfy to fit into a URL path: the rule for RBAC names."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def env_name_problems(value: str) -> list[str]:
    """The name of an environment variable: printable ASCII without `=`."""
    problems = [] if value else ["environment variable name must be non-empty"]
    if not _matches_printable_but_equals(value):
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        )
    return problems


def port_name_problems(value: str) -> list[str]:
    """An IANA service name: names of container and Service ports."""
    problems = _too_long(value, PORT_NAME_MAX)
    if not _matches_port_charset(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def config_key_problems(value: str) -> list[str]:
    """A key of a ConfigMap or Secret, which becomes a file's name."""
    if len(value) <= SUBDOMAIN_MAX and value[:1] != "." and _matches_config_key(value):
        return []
    problems = _too_long(value, SUBDOMAIN_MAX)
    if not _matches_config_key(value):
        problems.append(_NOT_A_CONFIG_KEY)
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def are_config_keys(values: Collection[str]) -> bool:
    """Whether all of them are fine, told at a glance; a no is not certain."""
    text = "\n".join(values)
    return text.count("\n") + 1 == len(values) and _match_config_keys(text) is not None


def generate_name(base: str, random: Random) -> str:
    """`base` with a random suffix, cut so that the whole is a DNS label long at most."""
    kept = base.encode("utf-8", "surrogatepass")[: _GENERATED_MAX - _GENERATED_SUFFIX]
    suffix = "".join(random.choices(_GENERATED_ALPHABET, k=_GENERATED_SUFFIX))
    return kept.decode("utf-8", "ignore") + suffix


_PAIRS = [first + second for second in _GENERATED_ALPHABET for first in _GENERATED_ALPHABET]


def suffix(number: int) -> str:
    """Five letters as generated names end with, drawn from a number instead of at random."""
    number, first = divmod(number, len(_PAIRS))
    number, second = divmod(number, len(_PAIRS))
    return _PAIRS[first] + _PAIRS[second] + _PAIRS[number % len(_GENERATED_ALPHABET)][0]


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = _too_long(prefix, SUBDOMAIN_MAX, "bytes")
    if not _matches_subdomain(prefix):
        problems.append(_NOT_A_SUBDOMAIN)
    return [f"prefix part {text}" for text in problems]


def _too_long(value: str, limit: int, unit: str = "characters") -> list[str]:
    size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return [f"must be no more than {limit} {unit}"] if size > limit else []
