"""A model server that takes batches too, as OpenAI and Anthropic do: files of questions in, files of answers out.

    with BatchServer(by_text({...})) as server:
        ...
        server.finish()                      # until then every batch is in progress
        assert server.handed_in == [40]      # questions in each batch

Each question is answered by the script, as if it had come alone.
"""

import asyncio
import json
import re
import threading
import time
from typing import Any

from tests.servers.model_script import Call, Script, Step, step_of
from tests.servers.model_server import ModelServer, _send
from tests.servers.model_wire import body_of

_FILE = re.compile(rb'name="file"; filename="[^"]*"\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', re.DOTALL)


class BatchServer(ModelServer):
    """A scripted model whose batches are done when `finish` was called."""

    def __init__(self, script: Script = None, *, is_quick: bool = True) -> None:
        super().__init__(script)
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, list[tuple[str, Any]]] = {}
        self._is_done = threading.Event()
        if is_quick:
            self._is_done.set()
        self.unanswered: set[int] = set()
        """The numbers of questions that batches leave out."""
        self.keys: set[str] = set()
        """Under which keys it was asked."""

    @property
    def handed_in(self) -> list[int]:
        """How many questions each batch had."""
        return [len(questions) for questions in self._batches.values()]

    def finish(self) -> None:
        self._is_done.set()

    async def _serve(self, request: tuple[str, dict[str, str], bytes], writer: asyncio.StreamWriter) -> bool:
        path, headers, body = request
        self.keys.add(headers.get("x-api-key") or headers.get("authorization", ""))
        answer = self._batch_answer(path.partition("?")[0], body)
        if answer is None:
            return await super()._serve(request, writer)
        await _send(writer, Step(), answer)
        return True

    def _batch_answer(self, path: str, body: bytes) -> bytes | None:
        match path.strip("/").split("/"):
            case ["v1", "files"]:
                found = _FILE.search(body)
                assert found is not None
                assert b'name="purpose"\r\n\r\nbatch' in body
                self._files[f"file-{len(self._files)}"] = found[1]
                return _json({"id": f"file-{len(self._files) - 1}", "object": "file", "purpose": "batch"})
            case ["v1", "batches"]:
                asked = json.loads(body)
                assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
                lines = [json.loads(line) for line in self._files[asked["input_file_id"]].splitlines()]
                return _json(
                    {"id": self._took([(one["custom_id"], one["body"]) for one in lines]), "status": "validating"}
                )
            case ["v1", "batches", batch]:
                done = self._is_done.is_set()
                return _json({
                    "id": batch,
                    "status": "completed" if done else "in_progress",
                    "output_file_id": f"out-{batch}" if done else None,
                    "error_file_id": None,
                })  # fmt: skip
            case ["v1", "files", file, "content"]:
                return _lines([
                    {"custom_id": name, "response": {"status_code": status, "body": reply}, "error": None}
                    for name, status, reply in self._answers(file.removeprefix("out-"), "openai")
                ])  # fmt: skip
            case ["v1", "messages", "batches"]:
                asked = json.loads(body)["requests"]
                batch = self._took([(one["custom_id"], one["params"]) for one in asked])
                return _json({"id": batch, "processing_status": "in_progress", "results_url": None})
            case ["v1", "messages", "batches", batch]:
                return _json({"id": batch, "processing_status": "ended" if self._is_done.is_set() else "in_progress"})
            case ["v1", "messages", "batches", batch, "results"]:
                return _lines([
                    {"custom_id": name, "result": _result(status, reply)}
                    for name, status, reply in self._answers(batch, "anthropic")
                ])  # fmt: skip
            case _:
                return None

    def _took(self, questions: list[tuple[str, Any]]) -> str:
        assert len({name for name, _ in questions}) == len(questions)
        batch = f"batch-{len(self._batches)}"
        self._batches[batch] = questions
        return batch

    def _answers(self, batch: str, interface: Any) -> list[tuple[str, int, Any]]:
        found = []
        for name, body in self._batches[batch]:
            call = Call(len(self._calls), interface, f"/batch/{batch}", {}, body, time.monotonic())
            self._calls.append(call)
            if call.number in self.unanswered:
                continue
            assert callable(self._script)
            step = step_of(self._script(call))
            found.append((name, step.status, json.loads(body_of(call, step))))
        return found


def _result(status: int, reply: Any) -> dict[str, Any]:
    return {"type": "succeeded", "message": reply} if status < 300 else {"type": "errored", "error": reply}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _lines(values: list[Any]) -> bytes:
    return b"".join(_json(value) + b"\n" for value in values)
