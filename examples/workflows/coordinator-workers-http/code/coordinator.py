"""Rank 0: hands out numbers over HTTP, collects their squares, and ends when it has them all."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TASKS = int(os.environ["TASKS"])
WORKERS = int(os.environ["DIST_WORLD_SIZE"]) - 1

waiting = list(range(TASKS))
results: dict[int, int] = {}
dismissed: set[str] = set()
lock = threading.Lock()
finished = threading.Event()


class Desk(BaseHTTPRequestHandler):
    """`GET /task?RANK` gives a number or null; `POST /result` takes one back."""

    def do_GET(self) -> None:
        with lock:
            task = waiting.pop() if waiting else None
        self._answer({"task": task})
        if task is None:
            dismissed.add(self.path)
            self._look()

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with lock:
            results[told["task"]] = told["result"]
        self._answer({})
        print(f"{len(results)} of {TASKS}", flush=True)
        self._look()

    def _look(self) -> None:
        if len(results) == TASKS and len(dismissed) == WORKERS:
            finished.set()

    def _answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """The progress is what is worth a line."""


address = (os.environ["DIST_COORDINATOR"], int(os.environ["COORDINATOR_PORT"]))
with ThreadingHTTPServer(address, Desk) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    finished.wait()
    server.shutdown()
total = json.dumps({"tasks": TASKS, "sum": sum(results.values())})
Path("../checkpoints/total.json").write_text(total)
