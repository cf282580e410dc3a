// Collections: which there are, making one, and the documents of one with how they stand.
import { html, useEffect, useState } from "./html.js";
import { ask, get, post, query } from "./api.js";
import { Badge, complain, Dialog, Empty, Failure, Field, hasFiles, Loading, localName, number, plural, Status, Table, toast, useAsked, when } from "./components.js";
import { base, Head, may, place, useCollection } from "./collection_parts.js";
import { More, Stat, Stats, usePages } from "./console_parts.js";
import { addPage, go, href, refine } from "./router.js";

const PLAIN = ["txt", "text"];
const MEDIA = { html: "text/html", htm: "text/html", md: "text/markdown", pdf: "application/pdf", docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document" };
const STATUSES = ["waiting", "complete", "partial", "failed"];
const LOOK_EVERY = 1500;

function Create({ onClose }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState("");
  const [error, setError] = useState(null);
  const ontologies = useAsked(() => get("/api/v1/ontologies"), []);
  const known = ontologies.data?.ontologies ?? [];
  const make = async (event) => {
    event.preventDefault();
    try {
      const made = await post("/api/v1/collections", { name: name.trim(), ontologyId: chosen || known[0].id });
      go(place(made.id));
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<${Dialog} title="New collection" onClose=${onClose}><form class="stack" onSubmit=${make}>
    <${Field} label="Name" hint="Letters from A to Z, digits, blanks, dots and dashes."><input required maxlength="128" pattern="[A-Za-z0-9][A-Za-z0-9._ \\-]*"
      title="Letters, digits, blanks, dots, dashes" value=${name} onInput=${(event) => setName(event.target.value)} placeholder="press-2026" /><//>
    <${Field} label="Ontology" hint="What its graph will be true to."><select value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
      ${known.map((one) => html`<option key=${one.id} value=${one.id}>${one.label || one.names[0] || one.id}</option>`)}</select><//>
    <${Failure} error=${error || ontologies.error} />
    <div class="row end"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${!name.trim() || !known.length}>Create</button></div></form><//>`;
}

function Collections() {
  const [making, setMaking] = useState(false);
  const pages = usePages(async (after) => {
    const page = await get(`/api/v1/collections${query({ limit: 60, after })}`);
    return { rows: page.collections, next: page.next ?? null };
  }, []);
  return html`<div class="page stack">
    <div class="page-head"><div><h1>Collections</h1><p>Many documents, one graph. What nine documents mention is one entity, with the sentences of all nine.</p></div>
      <button type="button" class="primary" onClick=${() => setMaking(true)}>New collection…</button></div>
    ${pages.loading && !pages.rows.length && html`<${Loading} />`}
    ${!pages.loading && !pages.error && !pages.rows.length && html`<${Empty} title="No collection yet"
      action=${html`<button type="button" class="primary" onClick=${() => setMaking(true)}>Create one</button>`}>Give it a name and an ontology, then drop documents on it.<//>`}
    <ul class="cards plain">${pages.rows.map((one) => html`<li key=${one.id}><a class="card collection-card" href=${href(place(one.id))}>
      <h2><bdi>${one.name}</bdi></h2><p class="muted small" title=${one.ontologyId}>Ontology ${localName(one.ontologyId)}</p>
      <dl><div><dt>documents</dt><dd>${number(one.documents)}</dd></div><div><dt>entities</dt><dd>${number(one.entities)}</dd></div><div><dt>relations</dt><dd>${number(one.claims)}</dd></div></dl>
      <p class="row tight"><${Badge} kind="info">${one.role}<//><span class="muted small">since ${when(one.createdAt, "")}</span></p></a></li>`)}</ul>
    <${More} pages=${pages} />
    ${making && html`<${Create} onClose=${() => setMaking(false)} />`}
  </div>`;
}

async function toDocument(file) {
  const end = file.name.split(".").pop().toLowerCase();
  const sourceTime = new Date(file.lastModified).toISOString();
  if (!MEDIA[end] || PLAIN.includes(end)) return { name: file.name, text: await file.text(), sourceTime };
  const bytes = new Uint8Array(await file.arrayBuffer());
  let letters = "";
  for (let at = 0; at < bytes.length; at += 0x8000) letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { name: file.name, contentBase64: btoa(letters), mediaType: MEDIA[end], sourceTime };
}

function Add({ id, onAdded }) {
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const add = async (files) => {
    if (!files.length) return;
    setBusy(true);
    try {
      const documents = await Promise.all([...files].map(toDocument));
      const answer = await post(`${base(id)}/documents`, { documents });
      toast(`${plural(answer.accepted, "document")} added, and being read now.`);
      onAdded();
    } catch (refusal) {
      complain(refusal);
    } finally {
      setBusy(false);
    }
  };
  return html`<div class=${`drop-files ${over ? "over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(hasFiles(event)); }} onDragLeave=${() => setOver(false)}
      onDrop=${(event) => { event.preventDefault(); setOver(false); add(event.dataTransfer.files); }}>
    <label class="button">${busy ? "Sending…" : "Add documents…"}<input class="hidden" type="file" multiple disabled=${busy}
      accept=".txt,.md,.html,.htm,.pdf,.docx" onChange=${(event) => { add(event.target.files); event.target.value = ""; }} /></label>
    <span class="muted">or drop them here: text, Markdown, HTML, PDF, DOCX</span></div>`;
}

function Documents({ params, query: now }) {
  const { id } = params;
  const loaded = useCollection(id);
  const pages = usePages(async (after) => {
    const page = await get(`${base(id)}/documents${query({ status: now.status, limit: 50, after })}`);
    return { rows: page.documents, next: page.next ?? null };
  }, [id, now.status]);
  const sync = useAsked(() => get(`${base(id)}/sync`), [id]);
  const waiting = sync.data?.waiting ?? 0;
  const look = () => { sync.reload(); pages.reload(); loaded.reload(); };
  // While documents are being read, how they stand is asked again.
  useEffect(() => {
    if (!waiting) return undefined;
    const timer = setTimeout(look, LOOK_EVERY);
    return () => clearTimeout(timer);
  }, [sync.data]);
  const [removing, setRemoving] = useState(null);
  const remove = async (names) => {
    setRemoving(null);
    try {
      for (const { name } of names) await ask(`${base(id)}/documents${query({ name })}`, { method: "DELETE" });
      toast(`${names[0].name} was removed.`);
    } catch (refusal) {
      complain(refusal);
    }
    look();
  };
  const retry = async () => {
    try {
      await post(`${base(id)}/retry`);
      look();
    } catch (refusal) {
      complain(refusal);
    }
  };
  const { collection } = loaded;
  const mayAdd = collection && may(collection, "contributor");
  const columns = [
    { label: "Document", render: (one) => one.names.map((name) => html`<div key=${name.name}><bdi>${name.title || name.name}</bdi>${name.error && html`<div class="error small">${name.error}</div>`}</div>`) },
    { label: "Status", render: (one) => html`<${Status} status=${one.status === "waiting" ? "pending" : one.status} />` },
    { label: "Entities", number: true, render: (one) => number(one.entities) },
    { label: "Relations", number: true, render: (one) => number(one.claims) },
    { label: "Added", render: (one) => when(one.addedAt) },
    { label: html`<span class="hidden">Actions</span>`, render: (one) => html`<span class="row tight end">${one.run && html`<a class="button small" href=${href(`/studio/${one.run}`)}>Text and graph</a>`}
      ${mayAdd && html`<button type="button" class="quiet small" onClick=${() => setRemoving(one.names)}>Remove</button>`}</span>` },
  ];
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="" />
    ${collection && html`
      ${sync.data && html`<${Stats} label="How they stand">${STATUSES.map((one) =>
        html`<${Stat} key=${one} label=${one} value=${number(sync.data[one])} kind=${one === "failed" && sync.data[one] ? "warn" : ""} />`)}<//>`}
      ${waiting > 0 && html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${plural(waiting, "document")} being read…</p>`}
      ${mayAdd && html`<${Add} id=${id} onAdded=${look} />`}
      <div class="row"><${Field} label="Status"><select value=${now.status || ""} onChange=${(event) => refine({ status: event.target.value })}>
          <option value="">Any</option>${STATUSES.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select><//>
        ${mayAdd && sync.data?.failed > 0 && html`<button type="button" onClick=${retry}>Read the failed again</button>`}</div>
      ${pages.loading && !pages.rows.length ? html`<${Loading} />` : !pages.error && html`<${Table} caption="Documents" columns=${columns} rows=${pages.rows} rowKey=${(one) => one.digest || one.names[0]?.name}
        empty=${now.status ? "No document has this status." : "No document yet: drop some above."} />`}
      <${More} pages=${pages} />`}
    ${removing && html`<${Dialog} title="Remove the document?" onClose=${() => setRemoving(null)}
      actions=${html`<button type="button" onClick=${() => setRemoving(null)}>Cancel</button><button type="button" class="danger" onClick=${() => remove(removing)}>Remove it</button>`}>
      <p>What <strong>${removing.map((one) => one.name).join(", ")}</strong> alone says leaves the collection with it.</p><//>`}
  </div>`;
}

addPage({ path: "/collections", title: "Collections", view: Collections, nav: "Collections", order: 20 });
addPage({ path: "/collections/:id", title: "Documents", view: Documents, section: "Collections" });
