// Questions to a collection: SPARQL with its answer as a table or a graph, and a question in words with cited answers.
import { html, useMemo, useState } from "./html.js";
import { ask, post, save } from "./api.js";
import { complain, duration, Empty, Failure, Field, Loading, Notice, number, plural, Table, Tabs } from "./components.js";
import { base, Head, place, useCollection } from "./collection_parts.js";
import { GraphPane } from "./graph_pane.js";
import { addPage, go, href, refine } from "./router.js";
import { session } from "./store.js";
import { graphOf, prefixesOf, readTriples, SparqlEditor, termsOf, written } from "./sparql.js";

const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
const SHOWN = 500;
const NONE = new Set();

function beginning(outline) {
  const [first] = outline.classes;
  const namespace = first ? first.iri.replace(/[^/#]*$/, "") : "";
  const prefixes = `${namespace ? `PREFIX : <${namespace}>\n` : ""}PREFIX rdfs: <${RDFS}>\n\n`;
  return { namespace, text: `${prefixes}SELECT ?entity ?name ?class WHERE {\n  ?entity a ?class ; rdfs:label ?name .${namespace ? "\n  FILTER(STRSTARTS(STR(?class), STR(:)))" : ""}\n}\nORDER BY ?name LIMIT 50` };
}

async function answer(id, text) {
  const began = performance.now();
  const isGraph = /^\s*(construct|describe)\b/im.test(text.replaceAll(/^\s*(prefix|base)\b.*$/gim, ""));
  const accept = isGraph ? "application/n-triples" : "application/sparql-results+json";
  const reply = await ask(`${base(id)}/sparql`, { method: "POST", body: text, headers: { "Content-Type": "application/sparql-query" }, accept, raw: true });
  const type = reply.headers.get("content-type") ?? "";
  if (type.startsWith("application/n-triples")) {
    const rows = readTriples(await reply.text());
    return { names: ["subject", "predicate", "object"], rows, isGraph: true, ms: performance.now() - began };
  }
  const told = await reply.json();
  if (told.boolean !== undefined) return { yes: told.boolean, names: [], rows: [], ms: performance.now() - began };
  return { names: told.head.vars, rows: told.results.bindings.map((row) => told.head.vars.map((name) => row[name] ?? null)), ms: performance.now() - began };
}

// The id of a thing, from its IRI; documents have one under the same base.
const idOf = (collection, iri) => (iri.startsWith(collection.base) && !iri.startsWith(`${collection.base}document-`) ? iri.slice(collection.base.length) : null);

// How many entities are asked for their names at once.
const NAMED_AT_ONCE = 200;

// The names and classes of the entities in some rows, by their IRIs: { name, types }.
async function thingsOf(collection, id, rows) {
  const iris = [...new Set(rows.flat().filter((term) => term?.type === "uri" && idOf(collection, term.value)).map((term) => term.value))];
  const parts = Array.from({ length: Math.ceil(iris.length / NAMED_AT_ONCE) }, (_, at) => iris.slice(at * NAMED_AT_ONCE, (at + 1) * NAMED_AT_ONCE));
  const things = new Map();
  for (const part of parts) {
    const { names, rows: found } = await answer(id, `SELECT ?thing ?name ?class { VALUES ?thing { ${part.map((iri) => `<${iri}>`).join(" ")} } ?thing <${RDFS}label> ?name . OPTIONAL { ?thing a ?class } }`);
    const [thing, name, type] = ["thing", "name", "class"].map((one) => names.indexOf(one));
    for (const row of found) {
      const known = things.get(row[thing].value) ?? { name: row[name].value, types: [] };
      things.set(row[thing].value, row[type] ? { ...known, types: [...known.types, row[type].value] } : known);
    }
  }
  return things;
}

// An IRI in words: the name of an entity, the label of a term of the ontology, a prefixed name, or the whole.
function reader(collection, terms, found) {
  const prefixes = prefixesOf(found.text);
  return (iri) => found.things.get(iri)?.name ?? (terms.knows(iri) ? terms.label(iri) : written(iri, prefixes));
}

function Cell({ id, collection, term, read }) {
  if (!term) return "";
  if (term.type === "uri") {
    const entity = idOf(collection, term.value);
    return entity ? html`<a href=${href(place(id, "entities", entity))} title=${term.value}><bdi>${read(term.value)}</bdi></a>` : html`<span class="iri" title=${term.value}>${read(term.value)}</span>`;
  }
  return html`<bdi>${term.value}</bdi>${term["xml:lang"] && html` <span class="muted small">${term["xml:lang"]}</span>`}`;
}

const csv = ({ names, rows }) => [names, ...rows.map((row) => row.map((term) => term?.value ?? ""))]
  .map((row) => row.map((text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",")).join("\r\n");

function Results({ id, collection, terms, found }) {
  const [shape, setShape] = useState(found.isGraph ? "graph" : "table");
  const read = useMemo(() => reader(collection, terms, found), [found]);
  const drawn = useMemo(() => graphOf(found.rows.slice(0, SHOWN), (iri) => ({ name: read(iri), types: found.things.get(iri)?.types ?? [] })), [found]);
  const model = { byId: drawn.byId, hue: (entity) => terms.hue(entity), label: (iri) => (iri ? read(iri) : ""), objectName: (relation) => relation.value?.value ?? "" };
  const open = (entity) => {
    const known = idOf(collection, entity.id);
    if (known) go(place(id, "entities", known));
  };
  if (found.yes !== undefined) return html`<${Notice} kind=${found.yes ? "good" : "info"} title=${found.yes ? "Yes" : "No"}>in ${duration(found.ms)}<//>`;
  const columns = found.names.map((name, index) => ({ label: name, render: (row) => html`<${Cell} id=${id} collection=${collection} term=${row[index]} read=${read} />` }));
  return html`<section class="stack" aria-label="Answer"><div class="row spread"><p class="muted" role="status">${plural(found.rows.length, "row")} in ${duration(found.ms)}</p>
      <button type="button" class="small" onClick=${() => save(csv(found), "answer.csv", "text/csv")}>Download CSV</button></div>
    <${Tabs} label="Answer as" name="answer" tabs=${[{ id: "table", label: "Table" }, { id: "graph", label: "Graph", count: drawn.entities.length }]} current=${shape} onChange=${setShape}>
      ${shape === "table" ? html`<${Table} caption="Rows" columns=${columns} rows=${found.rows.slice(0, SHOWN)} empty="No row fits." />
          ${found.rows.length > SHOWN && html`<p class="muted">The first ${number(SHOWN)} are shown; the download has all.</p>`}`
        : drawn.entities.length ? html`<div class="graph-canvas card answer"><${GraphPane} model=${model} shown=${drawn} hot=${NONE} hotRelation=${null} onEntity=${open} onRelation=${() => {}} /></div>`
        : html`<${Empty}>The answer has no entities to draw: select some beside their values.<//>`}
    <//></section>`;
}

function SparqlPage({ params, query: now }) {
  const { id } = params;
  const loaded = useCollection(id);
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="sparql" />
    ${loaded.terms && html`<${Sparql} id=${id} loaded=${loaded} given=${now.query} />`}</div>`;
}

function Sparql({ id, loaded, given }) {
  const start = useMemo(() => beginning(loaded.terms.outline), [loaded.terms]);
  const [text, setText] = useState(given || start.text);
  const [state, setState] = useState({ found: null, error: null, busy: false });
  const terms = useMemo(() => termsOf(loaded.terms.outline, start.namespace), [loaded.terms]);
  const run = async () => {
    setState({ found: null, error: null, busy: true });
    refine({ query: text === start.text ? "" : text });
    try {
      const found = await answer(id, text);
      const things = await thingsOf(loaded.collection, id, found.rows.slice(0, SHOWN)).catch((refusal) => {
        complain(refusal);
        return new Map();
      });
      setState({ found: { ...found, text, things }, error: null, busy: false });
    } catch (error) {
      setState({ found: null, error, busy: false });
    }
  };
  return html`<form class="card stack" onSubmit=${(event) => { event.preventDefault(); run(); }}>
      <${SparqlEditor} label="SPARQL" value=${text} onChange=${setText} onRun=${run} terms=${terms} />
      <div class="row spread"><span class="muted small">Read-only, with limits of time and rows. Words of the ontology are completed as you type; Ctrl+Enter runs the query.</span><button type="submit" class="primary" disabled=${state.busy}>Run</button></div></form>
    <${Failure} error=${state.error} />${state.busy && html`<${Loading} what="Asking" />`}
    ${state.found && html`<${Results} id=${id} collection=${loaded.collection} terms=${loaded.terms} found=${state.found} />`}`;
}

// An answer's words; a number in brackets leads to the sentence of that number.
const showSentence = (number) => document.getElementById(`sentence-${number}`)?.focus();
const withCitations = (text, citations) => text.split(/\[(\d+)\]/).map((part, index) =>
  index % 2 === 0 ? part
    : Number(part) <= citations.length ? html`<button type="button" class="cite" aria-label=${`Sentence ${part}`} onClick=${() => showSentence(part)}>${part}</button>`
    : `[${part}]`);

// The sentences that an answer rests on, in the order of its numbers.
const Citations = ({ citations }) => html`<ol class="citations">${citations.map((one, index) => html`<li key=${index} id=${`sentence-${index + 1}`} tabindex="-1">
  <blockquote><bdi>${one.text}</bdi></blockquote><span class="source"><bdi>${one.documentName || one.document.slice(7, 15)}</bdi>${one.page ? `, page ${one.page}` : ""}</span>${one.fact && html` <span class="muted small"><bdi>${one.fact}</bdi></span>`}</li>`)}</ol>`;

function Answered({ id, answer: told }) {
  return html`<section class="stack" aria-label="Answer"><div class="card stack">
      <p class="answer-text" role="status"><bdi>${withCitations(told.text, told.citations)}</bdi></p>
      ${!told.isSupported && html`<p class="muted">No sentence of this collection supports an answer.</p>`}</div>
    ${told.citations.length > 0 && html`<section class="card stack" aria-label="Sentences"><h2>Sources</h2><${Citations} citations=${told.citations} /></section>`}
    ${told.rows.length > 0 && html`<${Table} caption="What was found" columns=${told.columns.map((name, index) => ({ label: name, render: (row) => html`<bdi>${row[index]}</bdi>` }))} rows=${told.rows} />`}
    ${told.sparql && html`<details class="card"><summary>The query that was asked</summary><pre class="mono query">${told.sparql}</pre><p><a class="button small" href=${href(place(id, "sparql"), { query: told.sparql })}>Open it</a></p></details>`}</section>`;
}

function AskPage({ params, query: now }) {
  const { id } = params;
  const loaded = useCollection(id);
  const [question, setQuestion] = useState(now.q ?? "");
  const [model, setModel] = useState("");
  const [state, setState] = useState({ answer: null, error: null, busy: false });
  const models = session.get().models ?? [];
  const run = async (event) => {
    event.preventDefault();
    setState({ answer: null, error: null, busy: true });
    refine({ q: question.trim() });
    try {
      setState({ answer: await post(`${base(id)}/ask`, { question: question.trim(), ...(model ? { model } : {}) }), error: null, busy: false });
    } catch (error) {
      setState({ answer: null, error, busy: false });
    }
  };
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="ask" />
    ${loaded.collection && html`<form class="find card" onSubmit=${run}>
      <${Field} label="Question"><input required maxlength="4000" value=${question} onInput=${(event) => setQuestion(event.target.value)} placeholder="Who founded the companies that Halyard Ventures backed?" /><//>
      ${models.length > 1 && html`<${Field} label="Model"><select value=${model} onChange=${(event) => setModel(event.target.value)}><option value="">As set</option>${models.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select><//>`}
      <button type="submit" class="primary" disabled=${state.busy || !question.trim()}>Ask</button>
      <p class="muted small find-note">A model writes the query; the answer comes from the documents alone, and cites them.</p></form>
      <${Failure} error=${state.error} />${state.busy && html`<${Loading} what="Asking" />`}
      ${state.answer && html`<${Answered} id=${id} answer=${state.answer} />`}`}
  </div>`;
}

addPage({ path: "/collections/:id/ask", title: "Ask", view: AskPage, section: "Collections" });
addPage({ path: "/collections/:id/sparql", title: "SPARQL", view: SparqlPage, section: "Collections" });
