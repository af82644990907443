"""MetricSamples in Prometheus' text format, and those of GPU exporters."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.snapshot.exporters import GpuReading, readings
from kvestigate.snapshot.prometheus import Sample, samples
from kvestigate.snapshot.sickness import Sensors


@pytest.mark.parametrize(
    ("exposed", "found"),
    [
        ("", []),
        ("# HELP m words\n# TYPE m gauge\n", []),
        ("m 3\n", [Sample({}, 3)]),
        ("m{} 3 1700000000000\n", [Sample({}, 3)]),
        ('m{a="1",b="x y"} 2.5e3\nmore 1\nm_total 1\n', [Sample({"a": "1", "b": "x y"}, 2500)]),
        (r'm{a="quote \" brace } back \\ line \n end",} 1', [
            Sample({"a": 'quote " brace } back \\ line \n end'}, 1)
        ]),
        ("m nothing\nm{a=\nm\n", []),
    ],
)  # fmt: skip
def test_samples_of_one_metric(exposed: str, found: list[Sample]) -> None:
    assert list(samples(exposed.encode(), "m")) == found


@given(st.binary())
def test_anything_is_read_without_failing(exposed: bytes) -> None:
    list(samples(b"m" + exposed, "m"))


@given(st.dictionaries(st.sampled_from("abc"), st.text()), st.floats(allow_nan=False))
def test_what_is_written_is_read(labels: dict[str, str], value: float) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    written = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    assert list(samples(f"m{{{written}}} {value!r}\n".encode(), "m")) == [Sample(labels, value)]


@pytest.mark.parametrize(
    "labels",
    [b"a" * 500_000, b'a="' * 150_000, b'"' * 500_000, b'a="\\' * 150_000, b"{" * 500_000],
)
@pytest.mark.parametrize("end", [b"} 1", b" 1"])
def test_a_hostile_line_takes_no_longer_than_a_long_one(labels: bytes, end: bytes) -> None:
    begun = time.process_time()
    list(samples(b"m{" + labels + end, "m"))
    assert time.process_time() - begun < 1  # milliseconds; a quadratic pattern takes minutes


def test_an_exporter_tells_who_has_a_gpu() -> None:
    exposed = (
        b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 41\n'
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100",'
        b'Hostname="h",container="main",namespace="ml",pod="train-0"} 97\n'
        b'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",Hostname="h"} 0\n'
    )
    hot = Sensors(temperature=41, utilization=97)
    assert list(readings(exposed, "n")) == [
        GpuReading(
            "GPU-a", "n", "0", 97, "ml", "train-0", "main", model="NVIDIA H100", sensors=hot
        ),
        GpuReading("GPU-b", "n", "1", 0, "", "", ""),
    ]
    assert next(readings(exposed, "")).node == "h"
