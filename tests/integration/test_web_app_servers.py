"""The web app where the server is: restarted under it, shut to strangers, or started by the command line."""

import os
import signal
import subprocess
import sys

import httpx
import pytest

from sameas.cli.prompted import examples_from
from sameas.identity.normalize import normalize_context
from sameas.ontology.load import load_ontology
from sameas.server.authentication import open_entry
from sameas.server.tenants.web_sessions import COOKIE
from sameas.tenancy.api_keys import ApiKeys
from sameas.tenancy.directory import TenantDirectory
from sameas.tenancy.tables import open_tables
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
            page.get_by_text("The connection is gone").wait_for()
            (home / "hold").unlink()
            process = start(home, port)
            page.get_by_role("button", name="Download").wait_for()
            page.get_by_text("complete", exact=True).wait_for()
            assert page.locator("mark").count() > 0
    finally:
        process.kill()
        process.join(WITHIN)


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


def test_a_cookie_alone_changes_nothing(tenants):
    service, ((token, _), _) = tenants
    client = httpx.Client(base_url=service.url)
    signed_in = client.post("/api/v1/session", json={"kind": "api-key", "credential": token})
    assert signed_in.status_code == 204
    assert client.get("/api/v1/runs").status_code == 200
    put = {"url": "/api/v1/ontologies/forged", "content": TURTLE}
    assert client.put(**put).status_code == 401
    assert client.put(**put, headers={"X-Sameas-Page": "1", "Origin": "https://evil.example"}).status_code == 403
    assert client.put(**put, headers={"X-Sameas-Page": "1"}).status_code in (200, 201)
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
