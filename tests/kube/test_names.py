"""Names are judged by kube-apiserver's rules, in its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
ENV = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
PORT_CHARSET = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
PORT_LETTER = "must contain at least one letter (a-z)"


@pytest.mark.parametrize(
    ("rule", "value", "problems"),
    [
        (names.label_problems, "web-1", []),
        (names.label_problems, "1", []),
        (names.label_problems, "a" * 63, []),
        (names.label_problems, "a" * 64, ["must be no more than 63 characters"]),
        (names.label_problems, "é" * 32, ["must be no more than 63 characters", LABEL]),
        (names.label_problems, "a.b", ["must not contain dots"]),
        (names.label_problems, "", [LABEL]),
        (names.label_problems, "Web", [LABEL]),
        (names.label_problems, "web-", [LABEL]),
        (names.label_problems, "web\n", [LABEL]),
        (names.subdomain_problems, "a.b-c.d", []),
        (names.subdomain_problems, "a" * 253, []),
        (names.subdomain_problems, "a" * 254, ["must be no more than 253 characters"]),
        (names.subdomain_problems, "a..b", [SUBDOMAIN]),
        (names.subdomain_problems, "a_b", [SUBDOMAIN]),
        (names.label_1035_problems, "a-1", []),
        (names.label_1035_problems, "1-a", [LABEL_1035]),
        (names.label_1035_problems, "a" * 64, ["must be no more than 63 characters"]),
        (names.qualified_name_problems, "MyName", []),
        (names.qualified_name_problems, "example.com/my_name.1", []),
        (
            names.qualified_name_problems,
            "",
            ["name part must be non-empty", f"name part {QUALIFIED}"],
        ),
        (names.qualified_name_problems, "-a", [f"name part {QUALIFIED}"]),
        (names.qualified_name_problems, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name_problems, "A/a", [f"prefix part {SUBDOMAIN}"]),
        (names.qualified_name_problems, "a" * 64, ["name part must be no more than 63 bytes"]),
        (
            names.qualified_name_problems,
            "a" * 254 + "/a",
            ["prefix part must be no more than 253 bytes"],
        ),
        (
            names.qualified_name_problems,
            "a/b/c",
            [
                f"a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
        ),
        (names.label_value_problems, "", []),
        (names.label_value_problems, "My_value.1", []),
        (names.label_value_problems, "-a", [LABEL_VALUE]),
        (names.label_value_problems, "a" * 64, ["must be no more than 63 bytes"]),
        (names.path_segment_problems, "system:node", []),
        (names.path_segment_problems, "..", ["may not be '..'"]),
        (names.path_segment_problems, "a%/", ["may not contain '/'", "may not contain '%'"]),
        (names.env_name_problems, "MY-ENV.name 1", []),
        (names.env_name_problems, "", ["environment variable name must be non-empty"]),
        (names.env_name_problems, "A=B", [ENV]),
        (names.env_name_problems, "é", [ENV]),
        (names.env_name_problems, "A\t", [ENV]),
        (names.port_name_problems, "http-8080", []),
        (names.port_name_problems, "", [PORT_CHARSET, PORT_LETTER]),
        (names.port_name_problems, "8080", [PORT_LETTER]),
        (names.port_name_problems, "a" * 16, ["must be no more than 15 characters"]),
        (names.port_name_problems, "a--b", ["must not contain consecutive hyphens"]),
        (names.port_name_problems, "a-", ["must not begin or end with a hyphen"]),
        (names.port_name_problems, "HTTP", [PORT_CHARSET, PORT_LETTER]),
        (names.config_key_problems, ".bashrc", []),
        (names.config_key_problems, "a/b", [CONFIG_KEY]),
        (names.config_key_problems, ".", ["must not be '.'"]),
        (names.config_key_problems, "..", ["must not be '..'"]),
        (names.config_key_problems, "..a", ["must not start with '..'"]),
        (names.config_key_problems, "a" * 254, ["must be no more than 253 characters"]),
    ],
)
def test_problems(rule: Callable[[str], list[str]], value: str, problems: list[str]) -> None:
    assert rule(value) == problems


@given(st.text("abc-.", max_size=80), st.integers())
def test_a_generated_name_extends_its_base_within_a_label(base: str, seed: int) -> None:
    name = names.generate_name(base, Random(seed))
    assert name[:-5] == base[:58]
    assert set(name[-5:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert name == names.generate_name(base, Random(seed))


def test_generated_names_use_the_whole_alphabet() -> None:
    random = Random(1)
    letters = Counter("".join(names.generate_name("", random) for _ in range(500)))
    assert set(letters) == set("bcdfghjklmnpqrstvwxz2456789")


def test_a_generated_name_is_never_cut_inside_a_character() -> None:
    name = names.generate_name("é" * 40, Random(1))
    assert name.startswith("é" * 29)
    assert len(name.encode()) == 63


@given(st.lists(st.text("aA9-_./ \n") | st.sampled_from(["a" * 253, "a" * 254]), unique=True))
def test_config_keys_that_are_fine_at_a_glance_are_fine_one_by_one(keys: list[str]) -> None:
    at_a_glance = names.are_config_keys(keys)
    one_by_one = bool(keys) and not any(map(names.config_key_problems, keys))
    hidden = any(key.startswith(".") for key in keys)
    assert at_a_glance == (one_by_one and not hidden)
