// Statements of a collection and the names of their terms, as the service's pages and a mailed file show them. Names,
// sentences and labels come from documents and files: they are text and nothing else.
import { html } from "./html.js";
import { localName, number, plural } from "./components.js";

const XSD = "http://www.w3.org/2001/XMLSchema#";

export class Terms {
  constructor(outline) {
    this.outline = outline;
    this.labels = new Map([...outline.classes, ...outline.properties].map((one) => [one.iri, one.label]));
    this.hues = new Map();
  }

  knows(iri) {
    return this.labels.has(iri);
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
