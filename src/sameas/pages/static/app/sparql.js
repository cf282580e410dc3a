// SPARQL: a place to write it in, and its answers as plain data. The terms of the ontology are offered while a word is
// typed, by their names as people know them, and put in as the IRI or with the ontology's prefix.
import { html, useMemo, useRef, useState } from "./html.js";

const WORD = /[\w\u00c0-\uffff:-]+$/;
const OFFERED = 8;

export function termsOf(outline, namespace) {
  const written = (iri) => (namespace && iri.startsWith(namespace) && /^[\w-]+$/.test(iri.slice(namespace.length)) ? `:${iri.slice(namespace.length)}` : `<${iri}>`);
  const all = (kind, list) => list.map((one) => ({ kind, iri: one.iri, label: one.label, written: written(one.iri), search: `${one.label} ${one.iri.replace(/^.*[/#]/, "")}`.toLocaleLowerCase() }));
  return [...all("class", outline.classes), ...all("property", outline.properties)];
}

export function SparqlEditor({ value, onChange, onRun, terms, label }) {
  const box = useRef(null);
  const [at, setAt] = useState(0);
  const [word, setWord] = useState("");
  const offers = useMemo(() => {
    const words = word.replace(/^:/, "").toLocaleLowerCase();
    if (word.length < 2 && word !== ":") return [];
    const starts = (one) => one.search.startsWith(words) || one.search.includes(` ${words}`);
    return terms.filter((one) => one.search.includes(words)).sort((one, other) => starts(other) - starts(one)).slice(0, OFFERED);
  }, [word, terms]);
  const look = () => {
    const text = box.current.value.slice(0, box.current.selectionStart);
    const line = text.slice(text.lastIndexOf("\n") + 1);
    // Variables, prefixes and comments are nobody's to complete.
    setWord(/[?$][\w]*$|^\s*prefix\b|#[^>]*$/i.test(line) ? "" : WORD.exec(text)?.[0] ?? "");
    setAt(0);
  };
  const take = (one) => {
    const area = box.current, start = area.selectionStart - word.length;
    const next = `${area.value.slice(0, start)}${one.written} ${area.value.slice(area.selectionStart)}`;
    onChange(next);
    setWord("");
    requestAnimationFrame(() => {
      area.focus();
      area.setSelectionRange(start + one.written.length + 1, start + one.written.length + 1);
    });
  };
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onRun();
    } else if (!offers.length) return;
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((at + (event.key === "ArrowDown" ? 1 : offers.length - 1)) % offers.length);
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      take(offers[at]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      setWord("");
    }
  };
  const id = "terms";
  return html`<div class="sparql-editor">
    <label class="field"><span class="label">${label}</span>
    <textarea ref=${box} class="mono" rows="9" spellcheck=${false} autocapitalize="off" aria-autocomplete="list" aria-controls=${id} aria-haspopup="listbox"
      aria-activedescendant=${offers.length ? `${id}-${at}` : undefined} value=${value}
      onInput=${(event) => { onChange(event.target.value); look(); }} onClick=${look} onBlur=${() => setTimeout(() => setWord(""), 150)} onKeyDown=${press}></textarea></label>
    <ul id=${id} role="listbox" aria-label="Terms of the ontology" class=${offers.length ? "offers" : "offers none"}>
      ${offers.map((one, index) => html`<li key=${one.iri} id=${`${id}-${index}`} role="option" aria-selected=${index === at} onMouseDown=${(event) => { event.preventDefault(); take(one); }}>
        <span>${one.label}</span><span class="muted small">${one.kind}</span><code>${one.written}</code></li>`)}</ul></div>`;
}

const KNOWN = {
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#", rdfs: "http://www.w3.org/2000/01/rdf-schema#", owl: "http://www.w3.org/2002/07/owl#",
  xsd: "http://www.w3.org/2001/XMLSchema#", skos: "http://www.w3.org/2004/02/skos/core#", prov: "http://www.w3.org/ns/prov#",
};

// The prefixes of a query, and those that everybody writes.
export function prefixesOf(text) {
  const found = [...text.matchAll(/^\s*prefix\s+([\w.-]*):\s*<([^>\s]*)>/gim)].map(([, name, iri]) => [name, iri]);
  return [...found, ...Object.entries(KNOWN)].filter(([, iri]) => iri);
}

// An IRI with a prefix where there is one, else the whole of it: its end alone may mean anything.
export function written(iri, prefixes) {
  const [name, start] = prefixes.find(([, one]) => iri.startsWith(one) && /^[\w-]+$/.test(iri.slice(one.length))) ?? [];
  return start === undefined ? iri : `${name}:${iri.slice(start.length)}`;
}

// Answers of SPARQL as plain data: rows of terms, or triples; and either of them as a graph.
const TERM = /^(?:<([^>]*)>|(_:\S+)|"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([\w-]+))?)\s*/;
const ESCAPES = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };
const plain = (text) => text.replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g, (_, short, long, letter) =>
  short || long ? String.fromCodePoint(parseInt(short || long, 16)) : ESCAPES[letter] ?? letter);

function readTerm(text) {
  const found = TERM.exec(text);
  if (!found) return null;
  const [whole, iri, blank, literal, datatype, language] = found;
  const rest = text.slice(whole.length);
  if (iri !== undefined) return [{ type: "uri", value: plain(iri) }, rest];
  if (blank !== undefined) return [{ type: "bnode", value: blank.slice(2) }, rest];
  return [{ type: "literal", value: plain(literal), datatype, "xml:lang": language }, rest];
}

// N-Triples as the service writes them, a triple a line.
export function readTriples(text) {
  const triples = [];
  for (const line of text.split("\n")) {
    const subject = readTerm(line.trim());
    const predicate = subject && readTerm(subject[1]);
    const object = predicate && readTerm(predicate[1]);
    if (object) triples.push([subject[0], predicate[0], object[0]]);
  }
  return triples;
}

const isThing = (term) => term && term.type !== "literal";

// Links between the things of a row: of three terms the middle is what connects; else each with the next.
function linksOf(row) {
  const terms = row.filter(Boolean);
  if (terms.length === 3 && isThing(terms[0]) && terms[1].type === "uri") return [[terms[0], terms[1].value, terms[2]]];
  const links = [];
  for (let at = 0; at + 1 < terms.length; at += 1) if (isThing(terms[at])) links.push([terms[at], "", terms[at + 1]]);
  return links;
}

// What a graph pane draws of rows of terms; `describe` gives the name and the classes of an IRI.
export function graphOf(rows, describe) {
  const entities = new Map(), relations = [];
  const thing = (term) => {
    if (!entities.has(term.value)) entities.set(term.value, { id: term.value, ...describe(term.value) });
    return term.value;
  };
  for (const row of rows) {
    for (const [from, predicate, to] of linksOf(row)) {
      const relation = { subject: thing(from), predicate, object: "", value: null };
      if (isThing(to)) relation.object = thing(to);
      else relation.value = { value: to.value, datatype: to.datatype ?? "" };
      relations.push(relation);
    }
    if (row.length === 1 && isThing(row[0])) thing(row[0]);
  }
  return { entities: [...entities.values()], relations, byId: entities };
}
