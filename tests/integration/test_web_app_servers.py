"""The web app where the server is: restarted under it, shut to strangers, or started by the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from sameas.cli.prompted import examples_from
from sameas.identity.normalize import normalize_context
from sameas.ontology.load import load_ontology
from sameas.server.app import open_entry
from sameas.server.tenants.access import COOKIE
from sameas.tenancy.api_keys import ApiKeys
from sameas.tenancy.directory import TenantDirectory, open_tables
from tests.integration.test_service_processes import SERVERS, SLOW_REQUEST, _answers, _until
from tests.servers.browser import open_browser, open_page, violations
from tests.servers.port import free_port
from tests.unit.server import held_server
from tests.unit.server.house import EXAMPLE, REQUEST, TURTLE, WITHIN, running, settings_for, with_company
from tests.unit.tenancy import tokens


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


def start(home, port):
    process = SERVERS.Process(target=held_server.main, args=(home, port, "", 1.0, 5.0))
    process.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WITHIN) as client:
        _until(lambda: _answers(client), process)
    return process


def test_a_page_goes_on_after_its_server_was_killed_in_mid_run(browser, tmp_path):
    home, port = with_company(tmp_path), free_port()
    (home / "hold").touch()
    process = start(home, port)
    url = f"http://127.0.0.1:{port}"
    try:
        accepted = httpx.post(f"{url}/api/v1/extract", json=SLOW_REQUEST, headers={"Prefer": "respond-async"})
        key = accepted.json()["idempotencyKey"]
        _until(lambda: (home / "reached").exists())
        with open_page(browser, f"{url}/#/studio/{key}", forgiven=("ERR_", "50")) as page:
            page.locator("mark").first.wait_for()
            process.kill()
            process.join(WITHIN)
            page.get_by_text("Connection lost").wait_for()
            (home / "hold").unlink()
            process = start(home, port)
            page.get_by_role("button", name="Download").wait_for()
            page.get_by_text("complete", exact=True).wait_for()
            assert page.locator("mark").count() > 0
    finally:
        process.kill()
        process.join(WITHIN)


def test_pages_find_back_when_their_server_is_there_again(browser, tmp_path):
    home, port = with_company(tmp_path), free_port()
    process = start(home, port)
    url = f"http://127.0.0.1:{port}"
    try:
        with open_page(browser, url, forgiven=("ERR_", "50")) as page:
            page.get_by_role("option", name=re.compile("^company")).wait_for(state="attached")
            process.kill()
            process.join(WITHIN)
            page.get_by_role("link", name="Ontologies").click()
            page.get_by_role("alert").get_by_text("The service does not answer").wait_for()
            process = start(home, port)
            # Nobody has to do anything.
            page.get_by_role("link", name="Companies and their people").wait_for()
            assert page.get_by_role("alert").count() == 0
    finally:
        process.kill()
        process.join(WITHIN)


def test_a_service_that_cannot_say_who_is_signed_in_is_not_a_sign_in(browser, tmp_path):
    with running(tmp_path) as service:
        context = browser.new_context()
        page = context.new_page()
        page.route("**/api/v1/session", lambda route: route.abort())
        page.goto(service.url)
        page.get_by_role("alert").get_by_text("The service does not answer").wait_for()
        assert page.get_by_label("API key").count() == 0
        page.unroute("**/api/v1/session")
        page.get_by_role("button", name="Try again").click()
        page.get_by_role("heading", name="Turn a text into a graph").wait_for()
        context.close()


@pytest.fixture(scope="module")
def tenants(tmp_path_factory):
    home = tmp_path_factory.mktemp("two")
    database = open_tables(f"sqlite:///{home}/tenants.db")
    directory, keys = TenantDirectory(database), ApiKeys(database)
    tokens = []
    for name in ("one", "two"):
        tenant = directory.bootstrap(name, service_id="setup")
        ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
        user = directory.add_user(ctx, f"user of {name}")
        tokens.append((keys.create(ctx, "key", user_id=user.user_id).token, user.user_id))
    database.close()
    with running(home, entry=open_entry(settings_for(home, auth="api-key")), auth="api-key") as service:
        yield service, tokens


def sign_in(page, token):
    page.get_by_label("API key").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Turn a text into a graph").wait_for()


def test_each_tenant_signs_in_and_sees_its_own_work_alone(browser, tenants):
    service, ((one, user), (two, _)) = tenants
    with open_page(browser, service.url, forgiven=("401",)) as page:
        page.get_by_role("heading", name="Sign in").wait_for()
        assert violations(page) == []
        page.get_by_label("API key").fill("no-such-key")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").wait_for()
        sign_in(page, one)
        cookie = next(one for one in page.context.cookies() if one["name"] == COOKIE)
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert one not in cookie["value"]
        assert COOKIE not in page.evaluate("() => document.cookie")
        page.get_by_label("Add an ontology").set_input_files(
            files=[{"name": "mine.ttl", "mimeType": "", "buffer": TURTLE}]
        )
        page.get_by_text("is registered").wait_for()
        page.get_by_role("textbox", name="Text", exact=True).fill(REQUEST["text"])
        page.get_by_role("combobox", name="Extractor").select_option("lexicon")
        page.get_by_role("button", name="Extract the graph").click()
        # The stream of events has the cookie for its credential.
        page.get_by_role("button", name="Download").wait_for()
        address = page.url
        page.get_by_role("tab", name="Review").click()
        page.get_by_role("button", name="Accept").first.click()
        page.get_by_text("Accepted.").first.wait_for()
        page.get_by_role("tab", name="Decisions").click()
        assert user in page.locator(".decisions").inner_text()
        page.reload()
        page.get_by_role("button", name="Download").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("heading", name="Sign in").wait_for()
        # What the cookie stood for is gone with it.
        stale = {"Cookie": f"{COOKIE}={cookie['value']}"}
        assert httpx.get(f"{service.url}/api/v1/runs", headers=stale).status_code == 401
    with open_page(browser, address, forgiven=("404", "401")) as page:
        page.get_by_label("API key").fill(two)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("there is no run").wait_for()
        page.goto(service.url)
        page.get_by_role("heading", name="Turn a text into a graph").wait_for()
        assert page.get_by_text("Recent runs").count() == 0
        assert "mine" not in page.get_by_role("combobox", name="Ontology").inner_text()


def test_a_session_that_ends_costs_nothing_that_was_typed(browser, tenants):
    service, ((one, _), (two, _)) = tenants
    headers = {"X-API-Key": one, "Content-Type": "text/turtle"}
    put = httpx.put(f"{service.url}/api/v1/ontologies/company", content=TURTLE, headers=headers)
    assert put.is_success
    with open_page(browser, service.url, forgiven=("401",)) as page:
        sign_in(page, one)
        page.get_by_role("option", name=re.compile("^company")).wait_for(state="attached")
        text = page.get_by_role("textbox", name="Text", exact=True)
        text.fill("Anna Stone works for Acme Ltd.")
        # The cookie is taken away, as when its time is over; the next request finds out.
        page.context.clear_cookies()
        page.get_by_role("combobox", name="Ontology").select_option("company")
        page.get_by_role("heading", name="Sign in").wait_for()
        sign_in(page, one)
        assert text.input_value() == "Anna Stone works for Acme Ltd."
        assert page.get_by_role("combobox", name="Ontology").input_value() == "company"
        # Whoever is somebody else finds nothing of it.
        page.get_by_role("button", name="Sign out").click()
        sign_in(page, two)
        assert text.input_value() == ""


@contextmanager
def elsewhere(html):
    """The address of somebody else's page, at another port of this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join(WITHIN)
        server.server_close()


@pytest.mark.parametrize("referrer", ["", "no-referrer"])
@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_page_at_another_port_of_this_machine_changes_nothing(browser, tenants, tmp_path, is_signed_in, referrer):
    forged = {"text": "Forged words.", "ontologyId": "company", "extractionParams": {"extractor": "lexicon"}}
    with ExitStack() as stack:
        # Where nobody needs a credential, nothing but the origin tells the two pages apart.
        service, headers = stack.enter_context(running(tmp_path)) if not is_signed_in else tenants[0], {}
        context = browser.new_context()
        stack.callback(context.close)
        page = context.new_page()
        if is_signed_in:
            page.goto(service.url)
            sign_in(page, tenants[1][0][0])
            headers = {"X-API-Key": tenants[1][0][0]}
        before = httpx.get(f"{service.url}/api/v1/runs", headers=headers).json()
        policy = f'<meta name="referrer" content="{referrer}">' if referrer else ""
        # A form can send text only, which is made to read as JSON.
        name, _, value = json.dumps({**forged, "document": "="}).partition("=")
        form = (
            f'{policy}<form method="post" enctype="text/plain" action="{service.url}/api/v1/extract">'
            f"<input name='{name}' value='{value}'></form>"
        )
        address = stack.enter_context(elsewhere(form))
        page.goto(address)
        with page.expect_navigation() as sent:
            page.evaluate("() => document.forms[0].submit()")
        assert (sent.value.request.method, sent.value.status) == ("POST", 403)
        page.goto(address)
        refused = page.evaluate(
            """async ([url, body]) => {
              const tries = [{ mode: "no-cors" }, { mode: "cors", credentials: "include" }, { mode: "cors", credentials: "include", headers: { "X-Sameas-Page": "1" } }];
              const told = [];
              for (const one of tries) {
                const answer = await fetch(`${url}/api/v1/extract`, { method: "POST", body, ...one }).catch(() => null);
                told.push(answer ? answer.type : "refused");
              }
              told.push(await fetch(`${url}/api/v1/runs`, { credentials: "include" }).then(() => "read", () => "refused"));
              return told;
            }""",
            [service.url, json.dumps(forged)],
        )
        assert refused == ["opaque", "refused", "refused", "refused"]
        assert httpx.get(f"{service.url}/api/v1/runs", headers=headers).json() == before


def test_a_cookie_alone_changes_nothing(tenants):
    service, ((token, _), _) = tenants
    client = httpx.Client(base_url=service.url)
    signed_in = client.post("/api/v1/session", json={"kind": "api-key", "credential": token})
    assert signed_in.status_code == 204
    assert client.get("/api/v1/runs").status_code == 200
    put = {"url": "/api/v1/ontologies/forged", "content": TURTLE}
    assert client.put(**put).status_code == 401
    for origin in (
        "https://evil.example",
        "null",
        service.url.rpartition(":")[0] + ":1",
        f"{service.url}.evil.example",
    ):
        assert client.put(**put, headers={"X-Sameas-Page": "1", "Origin": origin}).status_code == 403, origin
        # Nor is anybody signed in or out from there.
        forced = {"json": {"kind": "api-key", "credential": token}, "headers": {"Origin": origin}}
        assert client.post("/api/v1/session", **forced).status_code == 403, origin
        assert client.delete("/api/v1/session", headers={"X-Sameas-Page": "1", "Origin": origin}).status_code == 403
    assert client.put(**put, headers={"X-Sameas-Page": "1"}).status_code in (200, 201)
    # Where a proxy ends TLS, the browser keeps the cookie for TLS all the same.
    for origin, is_secure in ((service.url, False), (service.url.replace("http:", "https:"), True)):
        sent = {"json": {"kind": "api-key", "credential": token}, "headers": {"Origin": origin}}
        given = httpx.post(f"{service.url}/api/v1/session", **sent).headers["set-cookie"]
        assert ("Secure" in given) == is_secure
    # A page elsewhere would have to ask before it sends that header, and is told nothing.
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    asked = client.request("OPTIONS", "/api/v1/ontologies/forged", headers=preflight)
    assert "access-control-allow-origin" not in asked.headers
    for broken in ("", "zz", "00" * 32, "00" * 31):
        answer = httpx.get(f"{service.url}/api/v1/runs", headers={"Cookie": f"{COOKIE}={broken}"})
        assert answer.status_code == 401
    client.close()


def command(home, *arguments, **environment):
    return {
        "args": [sys.executable, "-m", "sameas.cli", *arguments],
        "cwd": home,
        "env": {**os.environ, "SAMEAS_HOME": str(home), **environment},
    }


def test_the_command_line_writes_the_page_opens_the_app_and_gives_examples(browser, tmp_path):
    story, ontology = EXAMPLE / "story.txt", EXAMPLE / "company.ttl"
    told = tmp_path / "told"
    opener = tmp_path / "opener"
    opener.write_text(f'#!/bin/sh\necho "$1" > {told}\n')
    opener.chmod(0o755)
    arguments = ("extract", str(story), "-o", str(ontology), "--extractor", "lexicon", "--format", "html")
    page_file = tmp_path / "story.html"
    process = subprocess.Popen(
        **command(tmp_path, *arguments, "--out", str(page_file), "--open", BROWSER=f"{opener} %s", SAMEAS_PORT="1")
    )
    try:
        _until(lambda: told.exists() and told.read_text().strip() and process.poll() is None, within=60)
        address = told.read_text().strip()
        key = address.rpartition("/")[2]
        with open_page(browser, address) as page:
            page.get_by_role("heading", name="story.txt").wait_for()
            page.get_by_role("tab", name="Review").click()
            page.get_by_role("button", name="Accept").first.click()
            page.get_by_text("Accepted.").first.wait_for()
        with open_page(browser, page_file.as_uri(), offline=True) as page:
            page.get_by_role("heading", name="story.txt").wait_for()
            page.locator("mark").first.wait_for()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(WITHIN)
    given = subprocess.run(**command(tmp_path, "runs", "examples", key), capture_output=True, check=True)
    (tmp_path / "examples.jsonl").write_bytes(given.stdout)
    assert given.stdout.startswith(b'{"text":"')
    # What a reviewer let stand is what learning and prompts take.
    (example,) = examples_from(tmp_path / "examples.jsonl", load_ontology(ontology))
    assert example.triples
    nothing = subprocess.run(**command(tmp_path, "runs", "examples", "0" * 8), capture_output=True, check=False)
    assert b"no run has a key" in nothing.stderr


def test_a_token_or_a_key_is_asked_for_where_either_will_do(browser, tmp_path):
    (tmp_path / "keys.json").write_bytes(tokens.key_set(tokens.public_jwk("ES256")))
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    directory = TenantDirectory(database)
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
    user = directory.add_user(ctx, "user")
    key = ApiKeys(database).create(ctx, "key", user_id=user.user_id).token
    database.close()
    settings = {
        "auth": "jwt,api-key",
        "jwt_issuer": tokens.ISSUER,
        "jwt_audience": tokens.AUDIENCE,
        "jwt_keys": str(tmp_path / "keys.json"),
    }
    token = tokens.signed("ES256", tenant_id=tenant.tenant_id, sub=user.user_id, roles=[])
    with (
        running(tmp_path, entry=open_entry(settings_for(tmp_path, **settings)), **settings) as service,
        open_page(browser, service.url, forgiven=("401",)) as page,
    ):
        kind = page.get_by_role("combobox", name="With")
        for choice, label, credential in (("jwt", "Token", token), ("api-key", "API key", key)):
            kind.select_option(choice)
            assert violations(page) == []
            page.get_by_label(label, exact=True).fill(credential)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="Turn a text into a graph").wait_for()
            assert user.user_id in page.locator(".person").inner_text()
            page.get_by_role("button", name="Sign out").click()
            kind.wait_for()


def test_a_session_stands_for_a_token_and_ends_when_its_user_is_disabled(tmp_path):
    (tmp_path / "keys.json").write_bytes(tokens.key_set(tokens.public_jwk("ES256")))
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    directory = TenantDirectory(database)
    tenant = directory.bootstrap("one", service_id="setup")
    ctx = normalize_context(service_id="setup", tenant_id=tenant.tenant_id)
    user = directory.add_user(ctx, "user")
    settings = {
        "auth": "jwt",
        "jwt_issuer": tokens.ISSUER,
        "jwt_audience": tokens.AUDIENCE,
        "jwt_keys": str(tmp_path / "keys.json"),
    }
    token = tokens.signed("ES256", tenant_id=tenant.tenant_id, sub=user.user_id, roles=[])
    credential = {"kind": "jwt", "credential": token}
    with httpx.Client() as client:
        for start_again in (False, True):
            with running(tmp_path, entry=open_entry(settings_for(tmp_path, **settings)), **settings) as service:
                session = f"{service.url}/api/v1/session"
                if not start_again:
                    assert client.get(session).json()["signedIn"] is False
                    assert client.post(session, json={**credential, "credential": "nonsense"}).status_code == 401
                    assert client.post(session, json=credential).status_code == 204
                # It outlives the server, and not its user.
                assert client.get(session).json()["actor"] == user.user_id
                if start_again:
                    directory.disable_user(ctx, user.user_id)
                    assert client.get(session).json()["signedIn"] is False
    database.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("sameas.db*"))
    assert token.encode() not in kept
