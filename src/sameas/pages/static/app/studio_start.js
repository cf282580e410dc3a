// The start of Studio: a text, an ontology, an extractor, an estimate, go.
import { html, useEffect, useRef, useState } from "./html.js";
import { ask, get, post, put, query } from "./api.js";
import { Badge, Dialog, Failure, Field, Key, Status, Table, duration, number, plural, toast, useAsked, when } from "./components.js";
import { addPage } from "./pages.js";
import { go, href } from "./router.js";
import { session } from "./session.js";

const ONTOLOGY = /\.(ttl|rdf|owl|jsonld|nt|nq|trig|xml|json)$/i;
const EXTRACTORS = [
  ["", "Best for this ontology"], ["reader", "Reader: a small network, no examples needed"], ["lexicon", "Lexicon: labels and patterns of the ontology"],
  ["learned", "Learned: from your examples"], ["model", "Language model"],
];

const BYTES = { "Content-Type": "application/octet-stream" };

// The name under which a file of an ontology is registered.
const nameOf = (file) => file.replace(/\.[^.]+$/, "").replace(/[\s<>"{}|\\^`]+/g, "-").slice(0, 100) || "ontology";

function DropZone({ onFiles, children, label }) {
  const [over, setOver] = useState(0);
  return html`<div class=${`drop${over > 0 ? " over" : ""}`} role="group" aria-label=${label}
    onDragEnter=${(event) => { event.preventDefault(); setOver((now) => now + 1); }}
    onDragOver=${(event) => event.preventDefault()}
    onDragLeave=${() => setOver((now) => now - 1)}
    onDrop=${(event) => { event.preventDefault(); setOver(0); onFiles([...event.dataTransfer.files]); }}>${children}</div>`;
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
  if (estimate.cacheHit) return html`<p class="estimate" role="status"><${Badge} kind="good">known<//> This very work was done before: the answer is there at once and costs nothing.</p>`;
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

function Start({ query: address }) {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [ontology, setOntology] = useState("");
  const [extractor, setExtractor] = useState("");
  const [model, setModel] = useState("");
  const [busy, setBusy] = useState("");
  const [error, setError] = useState(null);
  const [replacing, setReplacing] = useState(null);
  const ontologies = useAsked(() => get("/api/v1/ontologies"), []);
  const list = ontologies.data?.ontologies ?? [];
  // "Run again" comes with the run whose text and ontology are wanted. Where the list of ontologies comes later, the
  // chosen one is an option all the same: the browser sends no form whose choice has none.
  useEffect(() => {
    if (!address.from) return;
    get(`/api/v1/runs/${encodeURIComponent(address.from)}/view?version=found`).then((view) => {
      setText(view.text ?? "");
      setName(view.run.document ?? "");
      setOntology(view.run.ontologyNames?.[0] ?? view.run.ontologyId);
    }, setError);
  }, [address.from]);
  const isAhead = Boolean(ontology) && !list.some((one) => one.names.includes(ontology) || one.id === ontology);
  const models = session.get().models ?? [];
  const choose = (id) => {
    setExtractor(id);
    setModel(id === "model" ? models[0] ?? "" : "");
  };
  const params = { ...(extractor ? { extractor } : {}), ...(model ? { model } : {}) };
  const request = { text, ontologyId: ontology, ...(name ? { document: name } : {}), extractionParams: params };
  const missing = [!text.trim() && "a text", !ontology && "an ontology", extractor === "model" && !model && "a model"].filter(Boolean);
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
    setOntology(name);
    toast(done.created ? `The ontology ${name} is registered.` : done.changed ? "The ontology has a new version." : "The ontology was there already.");
  });
  // A new version deletes the results of the old one: that is asked for first.
  const takeOntology = (file, name = nameOf(file.name)) => guard(`Reading ${file.name}`, async () => {
    const report = await post("/api/v1/ontologies/validate", file, { headers: BYTES });
    if (!report.valid) throw new Error(`${file.name}${report.line ? `, line ${report.line}` : ""}: ${report.error}`);
    const before = list.find((one) => one.id === report.iri || one.names.includes(name));
    if (before && before.version !== report.version) setReplacing({ file, name, before });
    else await register(file, name);
  });
  const takeDocument = (file) => guard(`Reading ${file.name}`, async () => {
    const read = await post(`/api/v1/documents/text${query({ name: file.name })}`, file, { headers: BYTES });
    setText(read.text);
    setName(file.name);
  });
  const take = async (files) => {
    for (const file of files) await (ONTOLOGY.test(file.name) ? takeOntology(file) : takeDocument(file));
  };
  const example = () => guard("Fetching the example", async () => {
    const [story, ontologyFile] = await Promise.all(["story.txt", "company.ttl"].map(async (file) => (await ask(`/app/example/${file}`, { raw: true, accept: "*/*" })).text()));
    await takeOntology(new File([ontologyFile], "company.ttl"), "example-company");
    setText(story);
    setName("story.txt");
  });
  const start = (event) => {
    event.preventDefault();
    guard("Starting", async () => {
      const answer = await post("/api/v1/extract", request, { headers: { Prefer: "respond-async" } });
      go(`/studio/${answer.idempotencyKey}`);
    });
  };
  return html`<div class="page">
    <div class="hero"><h1>Turn a text into a graph</h1>
      <p class="muted">Every entity and every relation is tied to the words that say it, and nothing gets in that your ontology does not allow.</p></div>
    <form class="start" onSubmit=${start}>
      <${DropZone} label="The document" onFiles=${take}><div class="card stack">
        <div class="row spread"><label class="label" for="source">Text</label>
          <div class="row"><button type="button" class="small" onClick=${example}>Try the example</button><${FileButton} label="Open a file" accept=".txt,.md,.html,.htm,.pdf,.docx" onFiles=${take} /></div></div>
        <textarea id="source" rows="14" dir="auto" placeholder="Paste or type a text, or drop a text, PDF, DOCX or HTML file here." value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
        <${Field} label="Name of the document" hint="Decisions of reviewers belong to it and hold for its next run, too."><input value=${name} maxlength="300" onInput=${(event) => setName(event.target.value)} /><//>
      </div><//>
      <${DropZone} label="How to extract" onFiles=${take}><div class="card stack">
        <${Field} label="Ontology"><select required value=${ontology} onChange=${(event) => setOntology(event.target.value)}>
          <option value="">Choose one</option>${isAhead && html`<option key="ahead" value=${ontology} selected>${ontology}</option>`}${list.flatMap((one) => (one.names.length ? one.names : [one.id]).map((id) => html`<option key=${id} value=${id} selected=${id === ontology}>${one.names.length ? id : one.label || id}${one.classes ? ` (${one.classes} classes)` : ""}</option>`))}</select><//>
        <div class="row"><${FileButton} label="Add an ontology" accept=".ttl,.rdf,.owl,.jsonld,.nt,.nq,.trig,.xml,.json" onFiles=${take} /><span class="hint">It names the classes and properties that the graph may have. Turtle, RDF/XML, JSON-LD and others; drop it here as well.</span></div>
        <${Field} label="Extractor"><select value=${extractor} onChange=${(event) => choose(event.target.value)}>${EXTRACTORS.map(([id, label]) => html`<option value=${id}>${label}</option>`)}</select><//>
        ${extractor === "model" && html`<${Field} label="Model" hint=${models.length ? "" : "This service lists no model: SAMEAS_MODELS names those that it may ask."}><input required value=${model} list="models" placeholder="provider:name" onInput=${(event) => setModel(event.target.value)} />
          <datalist id="models">${models.map((one) => html`<option value=${one} />`)}</datalist><//>`}
        <button type="submit" class="primary big" disabled=${!isReady || Boolean(busy)}>${busy ? `${busy}…` : "Extract the graph"}</button>
        ${/* Below the button: what comes late must not move it from under a pointer. */ ""}
        ${missing.length > 0 && !busy && html`<p class="estimate">Still needed: ${missing.join(" and ")}.</p>`}
        <${Estimate} estimate=${estimate} error=${refusal} />
        <${Failure} error=${error ?? ontologies.error} />
      </div><//>
    </form>
    <${Recent} />
    ${replacing && html`<${Dialog} title="Replace the ontology?" onClose=${() => setReplacing(null)}
      actions=${html`<button type="button" onClick=${() => setReplacing(null)}>Leave it as it is</button><button type="button" class="primary" onClick=${() => { setReplacing(null); register(replacing.file, replacing.name); }}>Replace it</button>`}>
      <p>${replacing.file.name} is another version of <strong>${replacing.before.names[0] ?? replacing.before.id}</strong>. With the new version, results of the one before are done again when they are next asked for.</p><//>`}
  </div>`;
}

addPage({ path: "/", title: "Studio", view: Start, nav: "Studio", order: 10 });
