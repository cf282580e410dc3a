// Ontologies: which there are, their versions and results, what changed, and putting a new version with open eyes.
import { html, useState } from "./html.js";
import { ask, download, get, query } from "./api.js";
import { Badge, complain, Dialog, Failure, Field, Key, Loading, localName, Notice, number, plural, Status, Table, toast, Unavailable, useAsked, useTitle, when } from "./components.js";
import { short, Stat, Stats } from "./console_parts.js";
import { addPage, href, refine } from "./router.js";

const SOURCE = { registry: "info", folder: "plain", published: "plain" };
const CHANGE = { added: "good", removed: "bad", changed: "warn" };
const nameOf = (one) => one.label || one.names[0] || localName(one.id);

// What changed, kind by kind; names and labels come from files and are text.
export function Changes({ changes, leftOut }) {
  if (!changes.length) return html`<p class="muted">Nothing that extraction uses has changed.</p>`;
  const countOf = (name) => changes.filter((one) => one.change === name).length;
  return html`<div class="stack"><p class="row">${Object.entries(CHANGE).map(([name, kind]) => countOf(name) > 0 && html`<${Badge} key=${name} kind=${kind}>${number(countOf(name))} ${name}<//>`)}</p>
    <ul class="changes">${changes.map((one) => html`<li key=${`${one.kind}${one.iri}`}>
      <div class="row tight"><${Badge} kind=${CHANGE[one.change]}>${one.change}<//><strong>${one.name}</strong><span class="muted">${one.kind}</span></div>
      ${one.fields.map((field) => html`<div class="field-change" key=${field.field}><span class="muted">${field.field}</span><span><del>${field.before || "nothing"}</del> <span aria-hidden="true">→</span> <ins>${field.after || "nothing"}</ins></span></div>`)}
    </li>`)}</ul>${leftOut > 0 && html`<p class="muted">${plural(leftOut, "further change")} left out.</p>`}</div>`;
}

const RESULTS = [
  { label: "Document", render: (run) => html`<a href=${href(`/runs/${run.idempotencyKey}/timeline`)}>${run.document || run.idempotencyKey.slice(7, 15)}</a>` },
  { label: "Status", render: (run) => html`<${Status} status=${run.status} />` },
  { label: "Began", render: (run) => when(run.startedAt) },
];

function effectOf({ invalidated, changed, created }) {
  if (invalidated) return `${plural(invalidated, "result")} of the present version would be invalidated`;
  return changed || created ? "No result would be invalidated" : "This is the present version: nothing would change";
}

// Choose a file, see what it would do, and only then put it.
function Upload({ named = "", onClose, onDone }) {
  const [name, setName] = useState(named);
  const [file, setFile] = useState(null);
  const [preview, setPreview] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const send = async (work) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (refusal) {
      setError(refusal);
    } finally {
      setBusy(false);
    }
  };
  const headers = { "Content-Type": "application/octet-stream" };
  const look = (event) => {
    event.preventDefault();
    send(async () => setPreview(await ask(`/api/v1/ontology-preview${query({ id: name.trim() })}`, { method: "POST", body: await file.arrayBuffer(), headers })));
  };
  const keep = () => send(async () => {
    const put = await ask(`/api/v1/ontologies/${encodeURIComponent(name.trim())}`, { method: "PUT", body: await file.arrayBuffer(), headers });
    toast(put.changed ? `${name.trim()} is in its new version; ${plural(put.entriesInvalidated, "result")} went.` : "Nothing has changed.");
    onDone();
  });
  const choose = (event) => {
    const [given] = event.target.files;
    setFile(given ?? null);
    setPreview(null);
    if (given && !name) setName(given.name.replace(/\.[^.]+$/, "").replace(/[^\w.-]+/g, "-"));
  };
  const refusal = error && error.body?.line ? `Line ${error.body.line}: ${error.message}` : null;
  return html`<${Dialog} title=${named ? "New version" : "Add an ontology"} wide=${Boolean(preview)} onClose=${onClose}>
    <form class="stack" onSubmit=${look}>
      <${Field} label="File" hint="Turtle, RDF/XML, JSON-LD, N-Triples, N-Quads or TriG."><input type="file" required onChange=${choose} /><//>
      <${Field} label="Name"><input required pattern="[^\\s<>]+" maxlength="1024" value=${name} readonly=${Boolean(named)} onInput=${(event) => { setName(event.target.value); setPreview(null); }} /><//>
      ${refusal ? html`<${Notice} kind="bad" title="That did not work">${refusal}<//>` : html`<${Failure} error=${error} />`}
      ${!preview && html`<div class="row end"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${busy || !file || !name.trim()}>See what it would change</button></div>`}
    </form>
    ${preview && html`<section class="stack" aria-label="What it would change">
      <${Notice} kind=${preview.invalidated ? "warn" : "good"} title=${effectOf(preview)}>
        ${preview.created ? "The name is new." : `From ${short(preview.oldVersion)} to ${short(preview.version)}.`} ${plural(preview.classes, "class", "classes")}, ${plural(preview.properties, "property", "properties")}.<//>
      ${preview.runs.length > 0 && html`<${Table} caption="Results that would be invalidated" columns=${RESULTS} rows=${preview.runs} rowKey=${(run) => run.idempotencyKey} />`}
      ${preview.oldVersion && html`<${Changes} changes=${preview.changes} leftOut=${preview.leftOut} />`}
      <div class="row end"><button type="button" onClick=${onClose}>Cancel</button>
        <button type="button" class=${preview.invalidated ? "danger" : "primary"} disabled=${busy || !preview.changed && !preview.created} onClick=${keep}>
          ${preview.invalidated ? `Register it and invalidate ${plural(preview.invalidated, "result")}` : "Register it"}</button></div>
    </section>`}
  <//>`;
}

const LIST = [
  { label: "Ontology", render: (one) => html`<a href=${href("/ontologies/one", { id: one.id })}>${nameOf(one)}</a><div class="muted small mono">${one.id}</div>` },
  { label: "Names", render: (one) => one.names.join(", ") },
  { label: "From", render: (one) => html`<span class="row tight"><${Badge} kind=${SOURCE[one.source]}>${one.source}<//>${one.shared && html`<${Badge} kind="info">shared<//>`}</span>` },
  { label: "Classes", number: true, render: (one) => number(one.classes) },
  { label: "Properties", number: true, render: (one) => number(one.properties) },
  { label: "Version", render: (one) => html`<${Key} value=${one.version.replace(/^sha256:/, "")} length=${10} />` },
  { label: "Changed", render: (one) => when(one.updatedAt) },
];

function Ontologies() {
  const { data, error, reload } = useAsked(() => get("/api/v1/ontologies"), []);
  const [adding, setAdding] = useState(false);
  return html`<div class="page stack">
    <div class="page-head"><div><h1>Ontologies</h1><p>The classes and properties that graphs are true to. A new version invalidates results of the old one: see which before you register it.</p></div>
      <button type="button" class="primary" onClick=${() => setAdding(true)}>Add an ontology…</button></div>
    <${Failure} error=${error} />
    ${!data && !error ? html`<${Loading} />` : data && html`<${Table} caption="Ontologies" columns=${LIST} rows=${data.ontologies} rowKey=${(one) => one.id} />`}
    ${adding && html`<${Upload} onClose=${() => setAdding(false)} onDone=${() => { setAdding(false); reload(); }} />`}
  </div>`;
}

function Compared({ id, before, after }) {
  const { data, error } = useAsked(() => get(`/api/v1/ontology-changes${query({ id, before, after })}`), [id, before, after]);
  return html`<section class="card stack" aria-label="What changed"><h2>From ${short(before)} to ${short(after)}</h2>
    <${Failure} error=${error} />${!data && !error ? html`<${Loading} />` : data && html`<${Changes} changes=${data.changes} leftOut=${data.leftOut} />`}</section>`;
}

function OneOntology({ query: now }) {
  const { data, error, reload } = useAsked(() => get(`/api/v1/ontology-versions${query({ id: now.id })}`), [now.id]);
  const [updating, setUpdating] = useState(false);
  useTitle(data && nameOf(data));
  if (error) return html`<${Unavailable} title="This ontology cannot be shown" error=${error}><a href="#/ontologies">All ontologies</a><//>`;
  if (!data) return html`<div class="page"><${Loading} /></div>`;
  const { versions } = data;
  const after = now.after || versions[0].version;
  const before = now.before || versions[1]?.version;
  const choose = (name, current) => (event) => refine({ [name]: event.target.value === current ? "" : event.target.value });
  const fetch = () => download(`/api/v1/ontologies/${encodeURIComponent(data.id)}?content=true`, `${data.names[0] || localName(data.id)}.ttl`).catch(complain);
  const shown = [
    { label: "Version", render: (one) => html`<span class="row tight"><${Key} value=${short(one.version)} length=${12} />${!one.replacedAt && html`<${Badge} kind="good">present<//>`}</span>` },
    { label: "Registered", render: (one) => when(one.updatedAt) || "–" },
    { label: "Replaced", render: (one) => when(one.replacedAt) || "–" },
    { label: "Classes", number: true, render: (one) => number(one.classes) },
    { label: "Properties", number: true, render: (one) => number(one.properties) },
    { label: "Results", number: true, render: (one) => number(one.results) },
  ];
  const present = versions[0];
  return html`<div class="page stack"><p class="crumbs"><a href="#/ontologies">Ontologies</a> / ${data.names[0] || localName(data.id)}</p>
    <div class="page-head"><div><h1>${nameOf(data)}</h1><p class="mono small">${data.id}</p></div>
      <div class="row"><button type="button" onClick=${fetch}>Download</button>${!data.shared && html`<button type="button" class="primary" onClick=${() => setUpdating(true)}>New version…</button>`}</div></div>
    <${Stats} label="The present version"><${Stat} label="Classes" value=${number(present.classes)} /><${Stat} label="Properties" value=${number(present.properties)} />
      <${Stat} label="Results" value=${number(present.results)} hint="of the present version" /><${Stat} label="Versions" value=${number(versions.length)} hint="the last 20 are kept" /><//>
    <section class="stack"><h2>Versions</h2><${Table} caption="Versions" columns=${shown} rows=${versions} rowKey=${(one) => one.version} /></section>
    ${versions.length > 1 && html`<section class="stack"><h2>What changed between two</h2>
      <div class="row"><${Field} label="From"><select value=${before} onChange=${choose("before", versions[1].version)}>${versions.map((one) => html`<option key=${one.version} value=${one.version}>${short(one.version)}</option>`)}</select><//>
      <${Field} label="To"><select value=${after} onChange=${choose("after", versions[0].version)}>${versions.map((one) => html`<option key=${one.version} value=${one.version}>${short(one.version)}</option>`)}</select><//></div>
      <${Compared} id=${data.id} before=${before} after=${after} /></section>`}
    <section class="stack"><h2>Results of the present version</h2><${Table} caption="Results of the present version" columns=${RESULTS} rows=${present.runs} rowKey=${(run) => run.idempotencyKey} empty="None yet." />
      ${present.results > present.runs.length && html`<p><a href=${href("/runs", { ontology: data.id })}>All ${number(present.results)}</a></p>`}</section>
    ${updating && html`<${Upload} named=${data.names[0] || data.id} onClose=${() => setUpdating(false)} onDone=${() => { setUpdating(false); reload(); }} />`}
  </div>`;
}

addPage({ path: "/ontologies", title: "Ontologies", view: Ontologies, nav: "Ontologies", order: 60 });
addPage({ path: "/ontologies/one", title: "Ontology", view: OneOntology, section: "Ontologies" });
