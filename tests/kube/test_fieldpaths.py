"""Field paths: the text of validation errors."""

from __future__ import annotations

import pytest

from kvestigate.kube.fieldpaths import Path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path("spec"), "spec"),
        (Path("spec").child("containers").index(0).child("image"), "spec.containers[0].image"),
        (Path("metadata").child("labels").key("foo/bar"), "metadata.labels[foo/bar]"),
        (Path("spec").child("template", "spec"), "spec.template.spec"),
        (Path().child("kind"), "kind"),
        (Path().index(2).key("x"), "[2][x]"),
        (Path(), ""),
    ],
)
def test_text_of_a_path(path: Path, text: str) -> None:
    assert str(path) == text


def test_extending_a_path_leaves_it_as_it_was() -> None:
    spec = Path("spec")
    left, right = spec.child("a"), spec.child("b")
    assert (str(spec), str(left), str(right)) == ("spec", "spec.a", "spec.b")
    assert left == Path("spec").child("a")
    assert len({left, Path("spec").child("a"), right}) == 2
