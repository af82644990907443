"""What the server tells Prometheus."""

from __future__ import annotations

import re

from tests.cluster.plane.conftest import Api

SAMPLE = re.compile(r'^[a-z_]+(?:\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)*\})? [0-9.e+-]+$')


async def scraped(api: Api) -> dict[str, float]:
    lines = (await Api(api.server).get("/metrics")).body.splitlines()
    samples = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}


def series(metric: str, verb: str, resource: str, **more: str) -> str:
    labels = {"verb": verb, "group": "", "version": "v1", "resource": resource, "subresource": ""}
    inner = ",".join(f'{key}="{value}"' for key, value in {**labels, **more}.items())
    return f"{metric}{{{inner}}}"


async def test_every_line_is_one_that_prometheus_reads(api: Api) -> None:
    await api.get('/api/v1/namespaces/default/pods/a"b%0A')
    text = (await api.get("/metrics")).body
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.match(line), line


async def test_requests_are_counted_by_what_they_asked_and_got(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    await api.get("/api/v1/namespaces/default/configmaps/a")
    await api.get("/api/v1/namespaces/default/configmaps/b")
    found = await scraped(api)
    assert found[series("apiserver_request_total", "POST", "configmaps", code="201")] == 1
    assert found[series("apiserver_request_total", "GET", "configmaps", code="200")] == 1
    assert found[series("apiserver_request_total", "GET", "configmaps", code="404")] == 1
    duration = "apiserver_request_duration_seconds"
    assert found[series(f"{duration}_count", "GET", "configmaps")] == 2
    assert found[series(f"{duration}_bucket", "GET", "configmaps", le="+Inf")] == 2
    assert found[series(f"{duration}_sum", "GET", "configmaps")] > 0


async def test_what_is_held_is_counted(api: Api) -> None:
    before = await scraped(api)
    beside = Api(api.server, "/clusters/beside/control-plane")
    await beside.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    after = await scraped(api)
    assert after["kvestigate_planes"] == before["kvestigate_planes"] + 1
    held = 'apiserver_resource_objects{group="",resource="configmaps"}'
    assert after[held] == before.get(held, 0) + 1
    assert after["process_cpu_seconds_total"] > 0


async def test_open_watches_are_counted(api: Api) -> None:
    plane = await api.server.planes.open("root")
    with plane.subscribe(("", "pods"), since=plane.state.revision):
        assert (await scraped(api))["kvestigate_watches"] == 1
    assert (await scraped(api))["kvestigate_watches"] == 0


async def test_no_plane_but_the_root_sees_the_servers_numbers(api: Api) -> None:
    beside = Api(api.server, "/clusters/beside/control-plane")
    assert (await beside.get("/metrics")).status == 404


async def test_askers_cannot_fill_the_memory(api: Api) -> None:
    for number in range(2100):
        await api.get(f"/api/v1/nonsense{number}")
    found = await scraped(api)
    total = [name for name in found if name.startswith("apiserver_request_total")]
    assert len(total) <= 2001
    other = next(value for name, value in found.items() if 'resource="other"' in name)
    assert other >= 100
