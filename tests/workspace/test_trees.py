"""What has to be sent and removed so that two trees of files are equal."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.workspace.trees import (
    LONGEST_EXCLUDE,
    MOST_EXCLUDES,
    Entry,
    Excludes,
    Kind,
    compare,
    parse_listing,
)

DIR = Entry(Kind.DIRECTORY)


def file(size: int = 1, modified: int = 100, executable: bool = False) -> Entry:
    return Entry(Kind.FILE, size, modified, executable)


def link(target: str) -> Entry:
    return Entry(Kind.LINK, target=target)


@pytest.mark.parametrize(
    ("wanted", "there", "delete", "send", "remove"),
    [
        ({"a": file()}, {}, False, ("a",), ()),
        ({"a": file()}, {"a": file()}, True, (), ()),
        ({"a": file(2)}, {"a": file(1)}, False, ("a",), ()),
        ({"a": file(modified=1)}, {"a": file(modified=2)}, False, ("a",), ()),
        ({"a": file(executable=True)}, {"a": file()}, False, ("a",), ()),
        ({"a": link("x")}, {"a": link("y")}, False, ("a",), ()),
        ({}, {"b": file()}, False, (), ()),
        ({}, {"b": file()}, True, (), ("b",)),
        ({}, {"d": DIR, "d/e": DIR, "d/e/f": file()}, True, (), ("d",)),
        ({"d": DIR}, {"d": DIR, "d/f": file()}, True, (), ("d/f",)),
        # Of another kind: it has to go, whatever was asked for.
        ({"a": DIR, "a/b": file()}, {"a": link("/etc")}, False, ("a", "a/b"), ("a",)),
        ({"a": file()}, {"a": DIR, "a/b": file()}, False, ("a",), ("a",)),
    ],
)
def test_the_least_is_done(
    wanted: dict[str, Entry],
    there: dict[str, Entry],
    delete: bool,
    send: tuple[str, ...],
    remove: tuple[str, ...],
) -> None:
    work = compare(wanted, there, delete=delete)
    assert (work.send, work.remove) == (send, remove)


def test_what_is_excluded_is_not_removed_nor_what_it_is_in() -> None:
    there = {"d": DIR, "d/x.pyc": file(), "d/old": file(), "e": DIR, "e/y": file()}
    work = compare({}, there, delete=True, excludes=("*.pyc",))
    assert work.remove == ("d/old", "e")


@pytest.mark.parametrize(
    "tree",
    [
        {"/etc/passwd": file()},
        {"../x": file()},
        {"a/../../x": file()},
        {"a//b": file()},
        {"./a": file()},
        {"pipe": Entry(Kind.OTHER)},
        {"a": link("/etc"), "a/passwd": file()},
        {"a": file(), "a/b/c": file()},
    ],
)
def test_what_leads_elsewhere_is_refused(tree: dict[str, Entry]) -> None:
    with pytest.raises(InputError, match="archive: "):
        compare(tree, {}, delete=False)


@pytest.mark.parametrize(
    ("path", "pattern", "hit"),
    [
        ("a/b/x.pyc", "*.pyc", True),
        ("a/__pycache__/x", "__pycache__", True),
        ("a/b", "b", True),
        ("a/bc", "b", False),
        ("build/x", "/build", True),
        ("a/build/x", "/build", False),
        ("data/raw/1", "data/raw", True),
        ("x/data/raw", "data/raw", False),
        ("node_modules/x", "node_modules/", True),
    ],
)
def test_patterns_match_as_people_expect(path: str, pattern: str, hit: bool) -> None:
    assert Excludes([pattern]).match(path) is hit
    assert Excludes(["nothing", pattern]).match(path) is hit
    assert not Excludes().match(path)


@given(st.text(st.characters(exclude_characters="/\0[]*?!"), min_size=1), st.text(min_size=1))
def test_a_name_excludes_itself_at_any_depth(name: str, other: str) -> None:
    assert Excludes([name]).match(name) is fnmatch.fnmatchcase(name, name)
    assert Excludes([name]).match(f"a/{name}/b")


GLOBS = st.text("ab*?[]!-^\\.é\n", min_size=1, max_size=8)


@given(st.lists(GLOBS, min_size=1, max_size=3), st.text("ab-]^[!\\.é\n", min_size=1, max_size=6))
def test_many_patterns_mean_what_each_means(patterns: list[str], name: str) -> None:
    alone = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    assert Excludes(patterns).match(name) is alone


@pytest.mark.parametrize(
    "patterns", [["x"] * (MOST_EXCLUDES + 1), ["x" * (LONGEST_EXCLUDE + 1)], ["*"] * 60_000]
)
def test_too_many_or_too_long_patterns_are_refused(patterns: list[str]) -> None:
    with pytest.raises(InputError, match="excludes: "):
        Excludes(patterns)


def test_a_name_that_is_no_utf8_can_be_excluded() -> None:
    assert Excludes(["*.tmp"]).match("a\udcff.tmp")
    assert Excludes(["a\udcff.tmp"]).match("a\udcff.tmp")


PATHS = st.sampled_from(["a", "b", "c", "d", "d/a", "d/b", "d/d", "d/d/a", "e", "e/a"])
ENTRIES = st.one_of(st.just(DIR), st.builds(file, st.integers(0, 2)), st.builds(link, st.just("x")))


def settled(drawn: dict[str, Entry]) -> dict[str, Entry]:
    """A tree that could be: what is above something is a directory."""
    made = dict(drawn)
    for path in drawn:
        while "/" in path:
            path = path.rpartition("/")[0]
            made[path] = DIR
    return made


TREES = st.dictionaries(PATHS, ENTRIES).map(settled)


@given(TREES, TREES, st.booleans())
def test_doing_it_makes_the_trees_equal(
    wanted: dict[str, Entry], there: dict[str, Entry], delete: bool
) -> None:
    work = compare(wanted, there, delete=delete)
    left = {
        path: entry
        for path, entry in there.items()
        if not any(path == gone or path.startswith(f"{gone}/") for gone in work.remove)
    }
    after = left | {path: wanted[path] for path in work.send}
    assert {path: after.get(path) for path in wanted} == wanted
    if delete:
        assert after == wanted
    assert compare(wanted, after, delete=delete).nothing


@given(st.dictionaries(st.text(st.characters(exclude_characters="\0"), min_size=1), ENTRIES))
def test_a_listing_is_read_back(tree: dict[str, Entry]) -> None:
    told = b"".join(
        f"{it.kind.value}\0{it.size}\0{it.modified}.25\0{'755' if it.executable else '644'}\0"
        f"{path}\0{it.target}\0".encode("utf-8", "surrogatepass")
        for path, it in tree.items()
        if path.isprintable()
    )
    assert parse_listing(told) == {path: it for path, it in tree.items() if path.isprintable()}


def test_a_link_where_a_directory_is_meant_goes_first() -> None:
    """What is sent below it would be written wherever it leads."""
    wanted = {"away/deep/f": Entry(Kind.FILE, 1, 1)}
    there = {"away": Entry(Kind.LINK, target="/opt"), "other": Entry(Kind.LINK, target="/opt")}
    work = compare(wanted, there, delete=False, excludes=["away"])
    assert (work.send, work.remove) == (("away/deep/f",), ("away",))
    there = {"away": Entry(Kind.DIRECTORY), "away/deep": Entry(Kind.LINK, target="/opt")}
    assert compare(wanted, there, delete=False).remove == ("away/deep",)
