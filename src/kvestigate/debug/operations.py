"""The operations of `debug`, as the catalog lists them."""

from __future__ import annotations

from kvestigate.debug import api, context, exec_url, timing
from kvestigate.debug.rendering import (
    answer_blocks,
    context_blocks,
    exec_url_blocks,
    timing_blocks,
)
from kvestigate.errors import EXIT_FAILED, EXIT_OK, KvestigateError
from kvestigate.operation import Effect, Operation, touches_nothing, with_access


def _reached(report: context.ContextReport) -> int:
    if report.problem:
        failure = KvestigateError(report.problem, hint=report.hint or None)
        failure.exit_code = report.exit_code
        raise failure
    return EXIT_OK


def _answered(answer: api.Answer) -> int:
    failure = answer.failure()
    if failure is not None:
        raise failure
    return EXIT_OK


CONTEXT: Operation[context.ContextOptions, context.ContextReport] = Operation(
    name="debug.context",
    summary="Show which cluster is used, how you authenticate, and as whom the server sees you.",
    description="If the server cannot be reached, the local part is still shown.",
    examples=(
        "kvestigate debug context",
        "kvestigate debug context --context staging --as jane",
        "kvestigate debug context -o json",
    ),
    input=context.ContextOptions,
    output=context.ContextReport,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(context.collect),
    render=context_blocks,
    json_file=True,
    exit_code=_reached,
)
API: Operation[api.RequestOptions, api.Answer] = Operation(
    name="debug.api",
    summary="GET a path of the API server with your credentials.",
    examples=(
        "kvestigate debug api",
        "kvestigate debug api /readyz",
        "kvestigate debug api '/api/v1/nodes?limit=1' -o json",
    ),
    input=api.RequestOptions,
    output=api.Answer,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(api.collect),
    render=answer_blocks,
    exit_code=_answered,
)
TIMING: Operation[timing.TimingOptions, timing.TimingReport] = Operation(
    name="debug.timing",
    summary="Measure typical calls to find out what is slow.",
    description=(
        "The first row is a call on a new connection, with name lookup, TCP, TLS and credentials. "
        "The others use an open connection."
    ),
    examples=(
        "kvestigate debug timing",
        "kvestigate debug timing --samples 20 --json timing.json",
    ),
    input=timing.TimingOptions,
    output=timing.TimingReport,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(timing.collect),
    render=timing_blocks,
    json_file=True,
)
EXEC_URL: Operation[exec_url.ExecUrlOptions, exec_url.ExecUrlReport] = Operation(
    name="debug.exec-url",
    summary="Show the URLs of an exec into a pod, and try the handshake.",
    description=(
        "Tries v5.channel.k8s.io and v4.channel.k8s.io. If the server accepts, `true` runs in the "
        "container. Exit code 1 if neither is accepted."
    ),
    examples=(
        "kvestigate debug exec-url web-0",
        "kvestigate debug exec-url web-0 -n shop -c sidecar",
    ),
    input=exec_url.ExecUrlOptions,
    output=exec_url.ExecUrlReport,
    # `true` changes nothing, but it appears in the server's audit log.
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(exec_url.collect),
    render=exec_url_blocks,
    exit_code=lambda report: EXIT_OK if report.works else EXIT_FAILED,
)
