"""The graph in a real browser: laid out to be read, steady while it grows, and never more than can be looked at."""

import itertools
import json
import sqlite3
from contextlib import closing
from typing import NamedTuple

import msgspec
import pytest
from playwright.sync_api import expect

from sameas.collections import Collections, Source, local_caller, open_tables, text_digest
from sameas.collections.names import hashed
from sameas.extraction.graph.model import Entity, Evidence, Relation
from sameas.extraction.runs.view import RunView, run_page
from sameas.ontology.load import load_ontology
from tests.servers.browser import WITHIN_MS, is_too_wide, open_browser, open_page, violations
from tests.unit.server.house import EXAMPLE, running

MANY = 100_000
COMPANY = "https://sameas.dev/example/company#"
STORY = (EXAMPLE / "story.txt").read_text("utf-8")

# What is drawn: how often lines of different ends cross, and whether every thing and name is inside and apart.
_DRAWN = """() => {
  const canvas = document.querySelector(".canvas"), { chart, labels } = canvas, { nodes, links } = chart.graphData();
  const side = (a, b, c) => Math.sign((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x));
  const lines = [...new Map(links.map((one) => [[one.source.id, one.target.id].sort().join("|"), one])).values()];
  let crossings = 0;
  lines.forEach((one, at) => lines.slice(at + 1).forEach((other) => {
    const ends = [one.source, one.target, other.source, other.target];
    if (new Set(ends).size === 4 && side(one.source, one.target, other.source) !== side(one.source, one.target, other.target)
      && side(other.source, other.target, one.source) !== side(other.source, other.target, one.target)) crossings += 1;
  }));
  const from = chart.screen2GraphCoords(0, 0), to = chart.screen2GraphCoords(canvas.clientWidth, canvas.clientHeight);
  const isInside = (box) => box.x >= from.x - 0.5 && box.y >= from.y - 0.5 && box.x + (box.w ?? 0) <= to.x + 0.5 && box.y + (box.h ?? 0) <= to.y + 0.5;
  const isApart = (one, other) => one.x >= other.x + other.w || other.x >= one.x + one.w || one.y >= other.y + other.h || other.y >= one.y + one.h;
  return {
    nodes: nodes.length, lines: lines.length, crossings, names: labels.length,
    outside: nodes.filter((one) => !isInside(one)).length + labels.filter((one) => !isInside(one)).length,
    covered: labels.filter((one, at) => !labels.slice(at + 1).every((other) => isApart(one, other))).length,
    pixels: 11 * Math.max(0.84, Math.min(1, chart.zoom())),
  };
}"""

# Places graphs with the app's own module, without a canvas. A tree of so many branches with leaves on each; then more.
_GROWN = """async ([branches, leaves, more]) => {
  const { placeGraph } = await import("./app/graph_places.js");
  const node = (id) => ({ id, r: 6, w: 60, h: 13 });
  const nodes = [node("root")], links = [];
  for (let branch = 0; branch < branches; branch += 1) {
    nodes.push(node(`b${branch}`));
    links.push({ source: "root", target: `b${branch}` });
    for (let leaf = 0; leaf < leaves; leaf += 1) {
      nodes.push(node(`b${branch}l${leaf}`));
      links.push({ source: `b${branch}`, target: `b${branch}l${leaf}` });
    }
  }
  const frame = { width: 1000, height: 600 };
  placeGraph(nodes, links, frame);
  const first = nodes.map(({ id, x, y }) => ({ id, x, y }));
  for (let at = 0; at < more; at += 1) {
    nodes.push(node(`new${at}`));
    links.push({ source: `b${at % branches}`, target: `new${at}` });
  }
  placeGraph(nodes, links, frame);
  const again = nodes.map(({ id, x, y }) => ({ id, x, y }));
  return { first, links: links.slice(0, first.length - 1), again };
}"""


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=WITHIN_MS)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("graph")) as opened:
        yield opened


@pytest.fixture(scope="module")
def story(service):
    request = {"text": STORY, "ontologyId": "company", "document": "story.txt"}
    return service.client.post("/api/v1/extract", json=request).json()["idempotencyKey"]


def drawn(page):
    page.locator(".canvas[data-settled]").wait_for()
    page.wait_for_function("() => document.querySelector('.canvas')?.labels?.length > 4")
    return page.evaluate(_DRAWN)


def crossings(places, links):
    at = {one["id"]: (one["x"], one["y"]) for one in places}

    def side(a, b, c):
        turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        return (turn > 0) - (turn < 0)

    lines = [(one["source"], one["target"]) for one in links]
    return sum(
        side(at[a], at[b], at[c]) != side(at[a], at[b], at[d])
        and side(at[c], at[d], at[a]) != side(at[c], at[d], at[b])
        for (a, b), (c, d) in itertools.combinations(lines, 2)
        if len({a, b, c, d}) == 4
    )


@pytest.mark.parametrize("size", [(360, 740), (1400, 900), (2560, 1300)])
def test_the_graph_of_the_example_is_legible(browser, service, story, size):
    width, height = size
    with open_page(
        browser, f"{service.url}/#/studio/{story}?min=0", viewport={"width": width, "height": height}
    ) as page:
        if width < 1000:
            page.get_by_role("button", name="Graph", exact=True).click()
        told = drawn(page)
        assert told["nodes"] > 40, told
        assert told["outside"] == told["covered"] == 0, told
        # Few lines cross, and on anything larger than a telephone nearly every name is there, in letters that can be read.
        assert told["crossings"] <= told["lines"] / 4, told
        assert told["names"] >= told["nodes"] * (0.8 if width > 1000 else 0.3), told
        assert told["pixels"] >= 9, told
        assert not is_too_wide(page)


def test_values_are_drawn_when_they_are_asked_for(browser, service, story):
    with open_page(browser, f"{service.url}/#/studio/{story}?min=0") as page:
        button = page.get_by_role("button", name="Values")
        expect(button).to_have_attribute("aria-pressed", "false")
        before = drawn(page)
        values = {
            json.dumps(one["value"], sort_keys=True)
            for one in service.client.get(f"/api/v1/runs/{story}/view").json()["relations"]
            if one.get("value")
        }
        assert values
        button.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        page.wait_for_function(
            "count => document.querySelector('.canvas').chart.graphData().nodes.length === count",
            arg=before["nodes"] + len(values),
        )
        assert drawn(page)["outside"] == 0
        assert violations(page) == []


def test_a_tree_has_no_lines_that_cross_and_stays_where_it_is_while_it_grows(browser, service):
    with open_page(browser, service.url) as page:
        told = page.evaluate(_GROWN, [6, 4, 9])
        assert crossings(told["first"], told["links"]) == 0
        before = {one["id"]: one for one in told["first"]}
        after = {one["id"]: one for one in told["again"]}
        # What was left of something, or above it, still is.
        pairs = list(itertools.combinations(before, 2))
        kept = sum(
            (before[a][axis] < before[b][axis]) == (after[a][axis] < after[b][axis]) for a, b in pairs for axis in "xy"
        )
        assert kept >= 0.85 * 2 * len(pairs), kept / (2 * len(pairs))
        assert all(-500 <= one["x"] <= 500 and -300 <= one["y"] <= 300 for one in told["again"])
        # The same graph lies the same way again.
        assert page.evaluate(_GROWN, [6, 4, 9]) == told


def test_the_file_of_a_run_with_100_000_entities_draws_a_part_and_lists_all_by_pages(browser, service, story, tmp_path):
    view = service.client.get(f"/api/v1/runs/{story}/view").json()
    person, company = f"{COMPANY}Person", f"{COMPANY}Company"
    view["text"] = "Nothing is said here."
    view["entities"] = [
        {"id": f"e{number}", "name": f"Zed{number} Name{number}", "types": [company if number % 50 == 0 else person]}
        for number in range(MANY)
    ]
    view["relations"] = [
        {"subject": f"e{number}", "predicate": f"{COMPANY}worksFor", "object": f"e{number // 50 * 50}"}
        for number in range(MANY)
        if number % 50
    ]
    view["rejected"], view["decisions"], view["decided"] = [], [], {}
    (tmp_path / "large.html").write_bytes(run_page(msgspec.convert(view, RunView)))
    with open_page(browser, (tmp_path / "large.html").as_uri(), offline=True) as page:
        page.set_default_timeout(4 * WITHIN_MS)
        page.get_by_text("The 2,500 most connected are drawn; 97,500 more are in the lists.").wait_for()
        page.get_by_role("tab", name="Entities").click()
        page.get_by_role("button", name="Show more of 100,000").wait_for()
        # A list grows by pages: what is not looked at is not in the page.
        assert page.locator("[data-entity]").count() == 100
        page.get_by_label("Search entities and relations").fill("Name99999")
        page.wait_for_function("() => document.querySelectorAll('[data-entity]').length === 2")
        page.locator("[data-entity]", has_text="Zed99999").click()
        page.get_by_role("heading", name="Zed99999 Name99999").wait_for()
        page.get_by_role("tab", name="Relations").click()
        page.locator("[data-relation]", has_text="Zed99950 Name99950").click()
        page.locator(".canvas[data-settled]").wait_for()
        assert page.evaluate("() => document.querySelector('.canvas').chart.graphData().nodes.length") == 2


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A service with a collection of 100,000 entities: a hundred companies with all who work for them."""
    home = tmp_path_factory.mktemp("crowd")
    tables = open_tables(f"sqlite:///{home / 'collections.db'}")
    ontology = load_ontology(EXAMPLE / "company.ttl")
    collection = Collections(tables).create("crowd", ontology=ontology, caller=local_caller())
    collection.put_document(Source(name="0.txt"), digest=text_digest("0"), said=_staff(0))
    tables.close()
    with closing(sqlite3.connect(home / "collections.db", isolation_level=None)) as rows:
        _copy(rows, times=99)
    with running(home) as service:
        yield service


# Of each table the numbers that are another's in a copy, and the words; reading a hundred documents would take a minute.
_COPIED = {
    "documents": ("id", "digest"),
    "sources": ("document", "name"),
    "nodes": ("id document atom", "name mentions"),
    "claims": ("id document subject_node subject_atom object_node object_atom", "evidence"),
    "atoms": ("id entity", "digest name_key"),
    "names": ("atom", "name"),
    "types": ("atom", ""),
    "entities": ("number", "id name"),
    "changes": ("", "id"),
}


def _copy(rows, *, times):
    """Writes the rows of the one document again, about others of other names."""
    (step,) = rows.execute("SELECT next_id FROM sameas_collections").fetchone()
    rows.execute("BEGIN")
    for table, (numbers, words) in _COPIED.items():
        name = f"sameas_collection_{table}"
        made = {column: column for _, column, *_ in rows.execute(f"PRAGMA table_info({name})")}
        made |= {column: f"{column} + :copy * {step}" for column in numbers.split()}
        for column in words.split():
            named = f"replace(replace({column}, 'ed0 ', 'ed' || :copy || ' '), 'ed0-', 'ed' || :copy || '-')"
            made[column] = f"CASE WHEN {named} = {column} THEN {column} || '-' || :copy ELSE {named} END"
        rows.execute(f"CREATE TEMP TABLE first AS SELECT * FROM {name}")
        rows.executemany(
            f"INSERT INTO {name} ({', '.join(made)}) SELECT {', '.join(made.values())} FROM first",
            [{"copy": copy} for copy in range(1, times + 1)],
        )
        rows.execute("DROP TABLE temp.first")
    # Under which a name is looked up.
    rows.create_function("name_hash", 2, lambda family, name: hashed("name", family, name))
    rows.execute(
        "INSERT OR IGNORE INTO sameas_collection_keys"
        " SELECT collection, name_hash(family, name_key), id FROM sameas_collection_atoms"
    )
    counts = ", ".join(f"{name} = {name} * {times + 1}" for name in ("next_id", "documents", "entities", "claims"))
    rows.execute(f"UPDATE sameas_collections SET {counts}")
    rows.execute("COMMIT")


class _Said(NamedTuple):
    entities: list[Entity]
    relations: list[Relation]


def _staff(company):
    def place(number):
        return Evidence(start=number * 20, end=number * 20 + 10, text=f"Zed{company} Name{number}")

    entities = [
        Entity(
            id=f"e{number}",
            name=f"Zed{company} Name{number}",
            types=(f"{COMPANY}{'Person' if number else 'Company'}",),
            mentions=(place(number),),
        )
        for number in range(MANY // 100)
    ]
    relations = [
        Relation(subject=one.id, predicate=f"{COMPANY}worksFor", object="e0", evidence=one.mentions)
        for one in entities[1:]
    ]
    return _Said(entities, relations)


def test_a_collection_of_100_000_entities_is_shown_a_part_at_a_time(browser, crowd):
    (collection,) = crowd.client.get("/api/v1/collections").json()["collections"]
    assert collection["entities"] == MANY
    with open_page(browser, f"{crowd.url}/#/collections/{collection['id']}/graph") as page:
        page.set_default_timeout(4 * WITHIN_MS)
        things = page.locator(".things li")
        page.get_by_text("of 100,000 entities").wait_for()
        begun = things.count()
        assert 0 < begun <= 200
        page.locator(".canvas[data-settled]").wait_for()
        # It is usable: a search begins anew, a choice brings forty neighbours, and their number is told.
        page.get_by_role("searchbox", name="Start from").fill("Zed77 Name500")
        page.get_by_role("button", name="Show", exact=True).click()
        things.filter(has_text="Zed77 Name500").first.wait_for()
        before = things.count()
        things.get_by_role("button", name="Zed77 Name0", exact=True).click()
        page.wait_for_function("before => document.querySelectorAll('.things li').length > before", arg=before)
        assert things.count() <= before + 41
        page.get_by_text("further relations on its own page.").wait_for()
        drawn = page.evaluate("() => document.querySelector('.canvas').chart.graphData().nodes.length")
        assert drawn == things.count()
        page.get_by_role("link", name="All relations").click()
        page.get_by_role("heading", name="Zed77 Name0").first.wait_for()
        page.get_by_role("heading", name="Relations that lead to it 999").wait_for()
