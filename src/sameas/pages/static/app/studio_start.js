// The start of Studio: a text, an ontology, an extractor, an estimate, go.
import { html, useEffect, useRef, useState } from "./html.js";
import { ask, get, post, put, query } from "./api.js";
import { Badge, Dialog, Failure, Field, Key, Status, Table, duration, hasFiles, number, plural, toast, useAsked, when } from "./components.js";
import { addPage, go, href } from "./router.js";
import { createStore, session, useStore } from "./store.js";

const ONTOLOGY = /\.(ttl|rdf|owl|jsonld|nt|nq|trig|xml|json)$/i;
const EXTRACTORS = [
  ["", "Best for this ontology"], ["reader", "Reader: a small network, no examples needed"], ["lexicon", "Lexicon: labels and patterns of the ontology"],
  ["learned", "Learned: from your examples"], ["model", "Language model"],
];

const BYTES = { "Content-Type": "application/octet-stream" };

// What is being prepared. It outlives the page, so that a look elsewhere or an expired session costs nothing; whoever
// signs in as somebody else begins with nothing.
const EMPTY = { text: "", name: "", ontology: "", extractor: "", model: "" };
const draft = createStore(EMPTY);
let owner = null;
session.watch((now) => {
  if (!now.ready || !now.signedIn) return;
  const who = `${now.tenant} ${now.actor}`;
  if (owner !== null && owner !== who) draft.set(EMPTY);
  owner = who;
});
const change = (changes) => draft.set((now) => ({ ...now, ...changes }));

// The name under which a file of an ontology is registered.
const nameOf = (file) => file.replace(/\.[^.]+$/, "").replace(/[\s<>"{}|\\^`]+/g, "-").slice(0, 100) || "ontology";

// Words that are dragged about are not its own: they go where they are let go.
function DropZone({ onFiles, children, label }) {
  const [over, setOver] = useState(0);
  const ifFiles = (act) => (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    act(event);
  };
  return html`<div class=${`drop${over > 0 ? " over" : ""}`} role="group" aria-label=${label}
    onDragEnter=${ifFiles(() => setOver((now) => now + 1))}
    onDragOver=${ifFiles(() => {})}
    onDragLeave=${ifFiles(() => setOver((now) => now - 1))}
    onDrop=${ifFiles((event) => { setOver(0); onFiles([...event.dataTransfer.files]); })}>${children}</div>`;
}

function FileButton({ label, accept, onFiles }) {
  const input = useRef(null);
  return html`<button type="button" class="small" onClick=${() => input.current.click()}>${label}</button>
    <input ref=${input} type="file" class="hidden" tabindex="-1" aria-label=${label} accept=${accept} onChange=${(event) => { onFiles([...event.target.files]); event.target.value = ""; }} />`;
}

function useEstimate(request, isReady) {
  const [estimate, setEstimate] = useState(null);
  const [error, setError] = useState(null);
  const body = JSON.stringify(request);
  useEffect(() => {
    setError(null);
    setEstimate(null);
    if (!isReady) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      post("/api/v1/estimate", request, { signal: stop.signal }).then(setEstimate, (refusal) => refusal.name !== "AbortError" && setError(refusal));
    }, 500);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [body, isReady]);
  return { estimate, error };
}

function Estimate({ estimate, error }) {
  if (error) return html`<${Failure} error=${error} />`;
  if (!estimate) return null;
  if (estimate.cacheHit) return html`<p class="estimate" role="status"><${Badge} kind="good">known<//> This was extracted before: the result is there at once and costs nothing.</p>`;
  const money = estimate.cost === null ? "no price known" : estimate.cost === 0 ? "no cost" : `about ${estimate.cost.toFixed(estimate.cost < 0.1 ? 4 : 2)} ${estimate.currency}`;
  return html`<p class="estimate" role="status">${plural(estimate.characters, "character")} in ${plural(estimate.chunks, "chunk")} for <strong>${estimate.extractor}</strong>:
    ${estimate.calls ? html` ${plural(estimate.calls, "call")}, about ${number(estimate.inputTokens + estimate.outputTokens)} tokens, ${money}.` : " no call of a model, no cost."}</p>`;
}

function Recent() {
  const { data } = useAsked(() => get("/api/v1/runs?limit=8"), []);
  if (!data?.runs.length) return null;
  const columns = [
    { label: "Document", render: (run) => html`<a href=${href(`/studio/${run.idempotencyKey}`)}><bdi>${run.document || "a text"}</bdi></a>` },
    { label: "Status", render: (run) => html`<${Status} status=${run.status} />` },
    { label: "Ontology", render: (run) => run.ontologyNames?.[0] ?? run.ontologyId },
    { label: "Extractor", render: (run) => run.extractor.name },
    { label: "Entities", number: true, render: (run) => number(run.entityCount) },
    { label: "Relations", number: true, render: (run) => number(run.relationCount) },
    { label: "Took", number: true, render: (run) => duration(run.durationMs) },
    { label: "When", render: (run) => when(run.startedAt) },
    { label: "Key", render: (run) => html`<${Key} value=${run.idempotencyKey} />` },
  ];
  return html`<section class="stack recent"><h2>Recent runs</h2><${Table} caption="Recent runs" columns=${columns} rows=${data.runs} rowKey=${(run) => run.idempotencyKey} /></section>`;
}

const PLACEHOLDER = "Paste or type a text, or drop a text, PDF, DOCX or HTML file here.";

// A sentence and the graph that it becomes: what this is about, before a word is read.
const Picture = () => html`<div class="picture card" role="img" aria-label="A sentence with its entities marked, and the graph that it becomes">
  <p class="reading"><mark class="hue-0">Hélène Aubert</mark> founded <mark class="hue-2">Nordlicht Speicher</mark> in <mark class="hue-1">Bremen</mark>.</p>
  <svg viewBox="0 0 440 132" aria-hidden="true">
    <g class="picture-line"><path d="M212 62 82 36" /><path d="m82 36 10-2.2-2 6.4z" class="tip" /><path d="M224 62 358 88" /><path d="m354 87-9.4 2 1.2-6.3z" class="tip" /></g>
    <g class="picture-said"><text x="156" y="38">founder</text><text x="306" y="62">headquarters</text></g>
    <circle class="hue-0" cx="72" cy="34" r="10" /><circle class="hue-2" cx="218" cy="62" r="14" /><circle class="hue-1" cx="366" cy="90" r="10" />
    <g class="picture-name"><text x="72" y="62">Hélène Aubert</text><text x="218" y="96">Nordlicht Speicher</text><text x="366" y="118">Bremen</text></g>
  </svg></div>`;

function Hero({ isNew, onExample }) {
  return html`<div class="hero"><div><h1>Turn a text into a graph</h1>
      <p class="lead">Every entity and every relation is tied to the words that say it, and nothing gets in that your ontology does not allow.</p>
      <ol class="steps"><li><strong>Text</strong> Paste it, or drop a file.</li><li><strong>Ontology</strong> The classes and properties that may be found.</li><li><strong>Graph</strong> Read it beside the text, correct it, download it.</li></ol>
      <p class="row"><button type="button" class=${isNew ? "primary" : ""} onClick=${onExample}>Try the example</button>
        <span class="muted small">A story of a battery maker, with an ontology of companies and their people.</span></p></div>
    <${Picture} /></div>`;
}

// A text: pasted, typed, from a file, or the example.
function Source({ now, onFiles }) {
  return html`<${DropZone} label="The document" onFiles=${onFiles}><div class="card stack">
    <div class="row spread"><label class="label" for="source">Text</label>
      <div class="row">${now.text && html`<button type="button" class="small quiet" onClick=${() => change({ text: "", name: "" })}>Clear</button>`}
        <${FileButton} label="Open a file" accept=".txt,.md,.html,.htm,.pdf,.docx" onFiles=${onFiles} /></div></div>
    <textarea id="source" rows="12" dir="auto" placeholder=${PLACEHOLDER} value=${now.text} onInput=${(event) => change({ text: event.target.value })}></textarea>
    <${Field} label="Name of the document" hint="Reviewers’ decisions are kept under this name and carry over to its next run."><input value=${now.name} maxlength="300" placeholder="report.txt" onInput=${(event) => change({ name: event.target.value })} /><//>
  </div><//>`;
}

function OntologyChoice({ now, list, onFiles }) {
  // Where the list comes later, the chosen one is an option all the same: the browser sends no form whose choice has none.
  const isAhead = Boolean(now.ontology) && !list.some((one) => one.names.includes(now.ontology) || one.id === now.ontology);
  const named = list.flatMap((one) => (one.names.length ? one.names : [one.id]).map((id) => ({ id, label: one.names.length ? id : one.label || id, classes: one.classes })));
  return html`<${Field} label="Ontology"><select required value=${now.ontology} onChange=${(event) => change({ ontology: event.target.value })}>
      <option value="">Choose one</option>
      ${isAhead && html`<option key="ahead" value=${now.ontology} selected>${now.ontology}</option>`}
      ${named.map(({ id, label, classes }) => html`<option key=${id} value=${id} selected=${id === now.ontology}>${label}${classes ? ` (${plural(classes, "class", "classes")})` : ""}</option>`)}</select><//>
    <div class="beside"><${FileButton} label="Add an ontology" accept=".ttl,.rdf,.owl,.jsonld,.nt,.nq,.trig,.xml,.json" onFiles=${onFiles} />
      <span class="hint">It names the classes and properties that the graph may have. Turtle, RDF/XML, JSON-LD and more; you can drop it here, too.</span></div>`;
}

function ExtractorChoice({ now }) {
  const models = session.get().models ?? [];
  const choose = (extractor) => change({ extractor, model: extractor === "model" ? models[0] ?? "" : "" });
  return html`<${Field} label="Extractor"><select value=${now.extractor} onChange=${(event) => choose(event.target.value)}>${EXTRACTORS.map(([id, label]) => html`<option key=${id} value=${id}>${label}</option>`)}</select><//>
    ${now.extractor === "model" && html`<${Field} label="Model" hint=${models.length ? "" : "This service lists no model: SAMEAS_MODELS names those that it may ask."}><input required value=${now.model} list="models" placeholder="provider:name" onInput=${(event) => change({ model: event.target.value })} /><//>
      <datalist id="models">${models.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}`;
}

// A new version of an ontology deletes the results of the old one: that is asked for first.
function Replace({ file, before, onReplace, onClose }) {
  return html`<${Dialog} title="Replace the ontology?" onClose=${onClose}
    actions=${html`<button type="button" onClick=${onClose}>Keep the present one</button><button type="button" class="primary" onClick=${onReplace}>Replace it</button>`}>
    <p>${file.name} is another version of <strong>${before.names[0] ?? before.id}</strong>. With the new version, results of the one before are done again when they are next asked for.</p><//>`;
}

const fetchExample = async (file) => (await ask(`/app/example/${file}`, { raw: true, accept: "*/*" })).text();

function Start({ query: address }) {
  const now = useStore(draft);
  const [busy, setBusy] = useState("");
  const [error, setError] = useState(null);
  const [replacing, setReplacing] = useState(null);
  const ontologies = useAsked(() => get("/api/v1/ontologies"), []);
  const list = ontologies.data?.ontologies ?? [];
  // "Run again" comes with the run whose text and ontology are wanted.
  useEffect(() => {
    if (!address.from) return;
    get(`/api/v1/runs/${encodeURIComponent(address.from)}/view?version=found`).then(({ text, run }) =>
      change({ text: text ?? "", name: run.document ?? "", ontology: run.ontologyNames?.[0] ?? run.ontologyId }), setError);
  }, [address.from]);
  const params = { ...(now.extractor ? { extractor: now.extractor } : {}), ...(now.model ? { model: now.model } : {}) };
  const request = { text: now.text, ontologyId: now.ontology, ...(now.name ? { document: now.name } : {}), extractionParams: params };
  const missing = [!now.text.trim() && "a text", !now.ontology && "an ontology", now.extractor === "model" && !now.model && "a model"].filter(Boolean);
  const isReady = !missing.length;
  const { estimate, error: refusal } = useEstimate(request, isReady && !busy);
  const guard = async (what, work) => {
    setBusy(what);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy("");
    }
  };
  const register = (file, name) => guard(`Reading ${file.name}`, async () => {
    const done = await put(`/api/v1/ontologies/${encodeURIComponent(name)}`, file, { headers: BYTES });
    await ontologies.reload();
    change({ ontology: name });
    toast(done.created ? `The ontology ${name} is registered.` : done.changed ? "The ontology has a new version." : "The ontology was there already.");
  });
  const takeOntology = (file, name = nameOf(file.name)) => guard(`Reading ${file.name}`, async () => {
    const report = await post("/api/v1/ontologies/validate", file, { headers: BYTES });
    if (!report.valid) throw new Error(`${file.name}${report.line ? `, line ${report.line}` : ""}: ${report.error}`);
    const before = list.find((one) => one.id === report.iri || one.names.includes(name));
    if (before && before.version !== report.version) setReplacing({ file, name, before });
    else await register(file, name);
  });
  const takeDocument = (file) => guard(`Reading ${file.name}`, async () => {
    const { text } = await post(`/api/v1/documents/text${query({ name: file.name })}`, file, { headers: BYTES });
    change({ text, name: file.name });
  });
  const take = async (files) => {
    const [document, ...more] = files.filter((file) => !ONTOLOGY.test(file.name));
    if (more.length) toast(`Studio reads one document at a time: ${document.name}. A collection takes many.`, { action: { label: "Collections", run: () => go("/collections") }, seconds: 12 });
    for (const file of files.filter((one) => ONTOLOGY.test(one.name))) await takeOntology(file);
    if (document) await takeDocument(document);
  };
  const example = () => guard("Fetching the example", async () => {
    const [text, ontology] = await Promise.all(["story.txt", "company.ttl"].map(fetchExample));
    await takeOntology(new File([ontology], "company.ttl"), "example-company");
    change({ text, name: "story.txt" });
  });
  const start = (event) => {
    event.preventDefault();
    guard("Starting", async () => {
      const answer = await post("/api/v1/extract", request, { headers: { Prefer: "respond-async" } });
      go(`/studio/${answer.idempotencyKey}`);
    });
  };
  return html`<div class="page">
    <${Hero} isNew=${!now.text} onExample=${example} />
    <form class="start" onSubmit=${start}>
      <${Source} now=${now} onFiles=${take} />
      <${DropZone} label="How to extract" onFiles=${take}><div class="card stack">
        <${OntologyChoice} now=${now} list=${list} onFiles=${take} />
        <${ExtractorChoice} now=${now} />
        <button type="submit" class="primary big" disabled=${!isReady || Boolean(busy)}>${busy ? `${busy}…` : "Extract the graph"}</button>
        ${/* Below the button: what comes late must not move it from under a pointer. */ ""}
        ${missing.length > 0 && !busy && html`<p class="estimate">Still needed: ${missing.join(" and ")}.</p>`}
        <${Estimate} estimate=${estimate} error=${refusal} />
        <${Failure} error=${error ?? ontologies.error} />
      </div><//>
    </form>
    <${Recent} />
    ${replacing && html`<${Replace} ...${replacing} onClose=${() => setReplacing(null)} onReplace=${() => { setReplacing(null); register(replacing.file, replacing.name); }} />`}
  </div>`;
}

addPage({ path: "/", title: "Studio", view: Start, nav: "Studio", order: 10 });
