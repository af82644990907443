"""Config files on their way to a host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.app.shards import config_files
from kvestigate.workspace.trees import compare

TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.dictionaries(st.sampled_from(["a.toml", "b.yaml"]), TEXTS))
def test_the_same_files_are_not_sent_again(files: dict[str, str]) -> None:
    work = compare(config_files(files).tree(), config_files(files).tree(), delete=True)
    assert work.nothing


def test_another_content_of_the_same_size_is_noticed() -> None:
    before, after = config_files({"a": "x = 1"}), config_files({"a": "x = 2"})
    assert compare(after.tree(), before.tree(), delete=True).send == ("a",)


def test_a_file_that_is_gone_is_removed() -> None:
    before, after = config_files({"a": "1", "b": "2"}), config_files({"a": "1"})
    assert compare(after.tree(), before.tree(), delete=True).remove == ("b",)
