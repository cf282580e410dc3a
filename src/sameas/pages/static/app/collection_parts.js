// What the pages of a collection share: its head with the ways to its other pages, names of terms, facts with their
// sentences. Names, sentences and labels come from documents and files: they are text and nothing else.
import { html, useState } from "./html.js";
import { get } from "./api.js";
import { Badge, Failure, Loading, localName, number, plural, useAsked } from "./components.js";
import { href } from "./router.js";

const RIGHTS = ["reader", "contributor", "curator", "owner"];
export const may = (collection, role) => RIGHTS.indexOf(collection.role) >= RIGHTS.indexOf(role);
export const base = (id) => `/api/v1/collections/${encodeURIComponent(id)}`;
export const place = (id, ...rest) => `/collections/${[id, ...rest].map(encodeURIComponent).join("/")}`;
const XSD = "http://www.w3.org/2001/XMLSchema#";

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

export class Terms {
  constructor(outline) {
    this.outline = outline;
    this.labels = new Map([...outline.classes, ...outline.properties].map((one) => [one.iri, one.label]));
    this.hues = new Map();
  }

  label(iri) {
    if (iri.startsWith(XSD)) return iri.slice(XSD.length);
    return this.labels.get(iri) ?? localName(iri);
  }

  // The same colour for the same class on every page: by its place in the ontology.
  hue(entity) {
    const [type] = entity.types ?? [];
    if (!type) return 11;
    if (!this.hues.size) this.outline.classes.forEach((one, index) => this.hues.set(one.iri, index % 11));
    return this.hues.get(type) ?? 11;
  }
}

export function Head({ id, loaded, current, children }) {
  const { collection } = loaded;
  if (loaded.error) return html`<${Failure} error=${loaded.error} />`;
  if (!collection) return html`<${Loading} />`;
  return html`<p class="crumbs"><a href="#/collections">Collections</a> / <bdi>${collection.name}</bdi></p>
    <div class="page-head"><div><h1><bdi>${collection.name}</bdi></h1>
      <p>${plural(collection.documents, "document")}, ${plural(collection.entities, "thing")}, ${plural(collection.claims, "claim")}</p></div>${children}</div>
    <nav class="ways" aria-label="This collection">${WAYS.map(([path, label]) => html`<a key=${path} href=${href(path ? place(id, path) : place(id))} aria-current=${current === path ? "page" : undefined}>${label}</a>`)}</nav>`;
}

export const EntityLink = ({ id, entity, terms }) => html`<a class="entity-link" href=${href(place(id, "entities", entity.id))}>
  <span class=${`hue-dot hue-${terms.hue(entity)}`} aria-hidden="true"></span><bdi>${entity.name || entity.id}</bdi></a>`;

export const Types = ({ entity, terms }) => entity.types.map((type) => html`<span key=${type} class=${`type hue-${terms.hue({ types: [type] })}`}>${terms.label(type)}</span>`);

const isNumber = (one) => /#(integer|decimal|double|float|long|int|nonNegativeInteger|positiveInteger)$/.test(one.datatype) && /^-?\d+(\.\d+)?$/.test(one.value);
export const value = (one) => [isNumber(one) ? number(Number(one.value)) : one.value, one.unit].filter(Boolean).join(" ");

// The sentences of a fact, document by document.
export function Evidence({ evidence, documents = 0 }) {
  const by = new Map();
  for (const one of evidence) by.set(one.document, [...(by.get(one.document) ?? []), one]);
  return html`<ul class="sentences">${[...by].map(([document, all]) => html`<li key=${document}>
      <span class="source"><bdi>${all[0].documentName || document.slice(7, 15)}</bdi>${all[0].page ? `, page ${all[0].page}` : ""}</span>
      ${all.map((one) => html`<blockquote key=${`${one.start}-${one.end}`}><bdi>${one.text}</bdi></blockquote>`)}</li>`)}
    ${documents > by.size && html`<li class="muted">and ${plural(documents - by.size, "further document")}</li>`}</ul>`;
}

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
