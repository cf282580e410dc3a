"""The sample with CORS in docs/http.md, asked by a script in a real browser from another origin."""

import asyncio
import html
import json
import re
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, AuthenticationError, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, idempotent
from tests.servers.port import free_port
from tests.servers.program import find_program, program_or_skip
from tests.unit.web.serving import wait_until

DOCS = Path(__file__).parents[2] / "docs" / "http.md"
WITHIN_SECONDS = 60
SCRIPT = """
async function ask(key, order, token) {
  const headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token};
  if (key) headers["Idempotency-Key"] = key;
  try {
    const reply = await fetch(API + "/orders", {method: "POST", headers, body: JSON.stringify(order)});
    return {
      status: reply.status,
      body: await reply.json(),
      replayed: reply.headers.get("X-Idempotency-Replayed"),
      expires: reply.headers.get("Idempotency-Expires"),
    };
  } catch (error) {
    return {error: String(error)};
  }
}
async function run() {
  const said = [];
  for (const [key, order, token] of ASKED) said.push(await ask(key, order, token));
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(said);
  document.body.append(told);
}
run();
"""


class Tokens(AuthenticationBackend):
    """Any bearer token is a user of that name; none is refused, also where a browser only asks whether it may ask."""

    async def authenticate(self, connection):
        token = connection.headers.get("authorization", "").removeprefix("Bearer ")
        if not token:
            raise AuthenticationError("send a token")
        return AuthCredentials(), SimpleUser(token)


def sample(origin):
    """The application of the docs, for pages of this origin."""
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL) if "CORS" in block]
    app, runs = FastAPI(), []

    @app.post("/orders", status_code=201)
    @idempotent(key="required")
    async def create(order: dict[str, int]) -> dict[str, int]:
        runs.append(order)
        return {"number": len(runs)}

    names = {
        "app": app,
        "engine": AsyncEngine(open_async_store("memory://")),
        "IdempotencyMiddleware": IdempotencyMiddleware,
        "AuthenticationMiddleware": AuthenticationMiddleware,
        "CORSMiddleware": CORSMiddleware,
        "LoginBackend": Tokens,
    }
    exec(code.replace("https://shop.example", origin), names)  # noqa: S102
    return app, runs


@contextmanager
def served(app, port):
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def shown(url, folder):
    """The page after its scripts, as Chromium has it."""
    command = [
        str(find_program("chromium")),
        "--headless=new",
        # Root may not use the sandbox; the page is our own.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={folder}",
        f"--virtual-time-budget={WITHIN_SECONDS * 1_000}",
        "--dump-dom",
        url,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=2 * WITHIN_SECONDS, check=True).stdout


def asked_by_a_page(asked, *, allowed, folder):
    """What a page's script hears, and what was run; `allowed` is whether the sample knows its origin."""
    api_port, page_port = free_port(), free_port()
    origin = f"http://127.0.0.1:{page_port}"
    app, runs = sample(origin if allowed else "https://shop.example")
    told = f"const API = 'http://127.0.0.1:{api_port}'; const ASKED = {json.dumps(asked)}; {SCRIPT}"

    async def page(request):
        return HTMLResponse(f"<!doctype html><body><script>{told}</script></body>")

    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        stack.enter_context(served(app, api_port))
        stack.enter_context(served(Starlette(routes=[Route("/", page)]), page_port))
        dom = shown(f"{origin}/", folder)
    found = re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom
    return json.loads(html.unescape(found[1])), runs


@pytest.mark.timeout(180)
def test_the_sample_works_in_a_browser(tmp_path):
    order = {"amount": 1}
    asked = [("k-1", order, "ann"), ("k-1", order, "ann"), ("k-1", {"amount": 2}, "ann"), (None, order, "ann")]
    said, runs = asked_by_a_page([*asked, ("k-1", order, "bob")], allowed=True, folder=tmp_path)
    assert [each["status"] for each in said] == [201, 201, 422, 400, 201]
    assert [each["replayed"] for each in said] == ["false", "true", None, None, "false"]
    assert [each["body"].get("number") for each in said] == [1, 1, None, None, 2]
    assert said[0]["expires"] == said[1]["expires"] is not None
    assert len(runs) == 2


@pytest.mark.timeout(180)
def test_a_page_of_an_origin_that_is_not_allowed_runs_nothing(tmp_path):
    said, runs = asked_by_a_page([("k-1", {"amount": 1}, "ann")], allowed=False, folder=tmp_path)
    assert "error" in said[0]
    assert runs == []
