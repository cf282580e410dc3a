// What the pages of a collection share: its head with the ways to its other pages and the downloads, links to entities,
// and relations with their sentences.
import { html, useEffect, useRef, useState } from "./html.js";
import { download, get, query } from "./api.js";
import { Badge, Dialog, Empty, Failure, Formats, Loading, complain, number, plural, showCurrent, useAsked, useTitle } from "./components.js";
import { href } from "./router.js";
import { Evidence, Terms, value } from "./statements.js";

const RIGHTS = ["reader", "contributor", "curator", "owner"];
export const may = (collection, role) => RIGHTS.indexOf(collection.role) >= RIGHTS.indexOf(role);
export const base = (id) => `/api/v1/collections/${encodeURIComponent(id)}`;
export const place = (id, ...rest) => `/collections/${[id, ...rest].map(encodeURIComponent).join("/")}`;

const WAYS = [
  ["", "Documents"], ["graph", "Graph"], ["pairs", "Same or different"], ["contradictions", "Contradictions"], ["sparql", "SPARQL"], ["ask", "Ask"],
];

// A collection with the names of its ontology's terms: { collection, terms, error, reload }.
export function useCollection(id) {
  const { data, error, reload } = useAsked(async () => {
    const [collection, outline] = await Promise.all([get(base(id)), get(`${base(id)}/outline`)]);
    return { collection, terms: new Terms(outline) };
  }, [id]);
  return { ...data, error, reload };
}

const FORMATS = [
  ["nquads", "N-Quads, a graph for each document", "nq"], ["turtle", "Turtle, the merged graph", "ttl"], ["jsonl", "JSON lines", "jsonl"],
  ["csv", "CSV, a relation a line", "csv"], ["html", "One HTML file with this viewer", "html"],
];

function Downloads({ id, name, onClose }) {
  const [busy, setBusy] = useState(false);
  const fetch = async (format, suffix) => {
    setBusy(true);
    await download(`${base(id)}/export${query({ format })}`, `${name}.${suffix}`).catch(complain);
    setBusy(false);
  };
  return html`<${Dialog} title="Download the collection" onClose=${onClose}><${Formats} formats=${FORMATS} isBusy=${busy} onChoose=${fetch} /><//>`;
}

export function Head({ id, loaded, current, title = "", children }) {
  const { collection } = loaded;
  const [downloads, setDownloads] = useState(false);
  const ways = useRef(null);
  const way = WAYS.find(([path]) => path === current)?.[1];
  useTitle(title || collection && (way ? `${way}: ${collection.name}` : collection.name));
  useEffect(() => showCurrent(ways.current), [current, Boolean(collection)]);
  if (loaded.error) return html`<h1>This collection cannot be shown</h1><${Failure} error=${loaded.error} /><p><a href="#/collections">All collections</a></p>`;
  if (!collection) return html`<${Loading} />`;
  return html`<p class="crumbs"><a href="#/collections">Collections</a> / <bdi>${collection.name}</bdi></p>
    <div class="page-head"><div><h1><bdi>${collection.name}</bdi></h1>
      <p>${plural(collection.documents, "document")}, ${plural(collection.entities, "entity", "entities")}, ${plural(collection.claims, "relation")} read from them</p></div>
      <div class="row">${children}<button type="button" onClick=${() => setDownloads(true)}>Download</button></div></div>
    ${downloads && html`<${Downloads} id=${id} name=${collection.name} onClose=${() => setDownloads(false)} />`}
    <nav class="ways" ref=${ways} aria-label="This collection">${WAYS.map(([path, label]) => html`<a key=${path} href=${href(path ? place(id, path) : place(id))} aria-current=${current === path ? "page" : undefined}>${label}</a>`)}</nav>
    ${current !== "" && collection.documents === 0 && html`<${Empty} title="No document yet" action=${html`<a class="button primary" href=${href(place(id))}>Add documents</a>`}>
      This page shows what documents say: it fills while they are read.<//>`}`;
}

export const EntityLink = ({ id, entity, terms }) => html`<a class="entity-link" href=${href(place(id, "entities", entity.id))}>
  <span class=${`dot hue-${terms.hue(entity)}`} aria-hidden="true"></span><bdi>${entity.name || entity.id}</bdi></a>`;

// A fact as a sentence, opened to what supports it.
export function Fact({ id, statement, terms, side = "subject" }) {
  const [open, setOpen] = useState(false);
  const link = (entity, name) => html`<a href=${href(place(id, "entities", entity))}><bdi>${name || entity}</bdi></a>`;
  const said = html`<span class="said">${terms.label(statement.predicate)}</span>`;
  const line = side === "object" ? html`${link(statement.subject, statement.subjectName)} ${said} <span class="muted">it</span>`
    : html`${said} ${statement.object ? link(statement.object, statement.objectName) : html`<bdi>${value(statement.value)}</bdi>`}`;
  return html`<li class="stated"><div class="stated-line"><span class="stated-words">${line}</span>
      <button type="button" class="quiet small" aria-expanded=${open} onClick=${() => setOpen(!open)}>${plural(statement.documents, "document")}</button>
      ${statement.confidence < 1 && html`<${Badge} title="The highest confidence of its documents">${number(Math.round(statement.confidence * 100))} %<//>`}</div>
    ${open && html`<${Evidence} evidence=${statement.evidence} documents=${statement.documents} />`}</li>`;
}
