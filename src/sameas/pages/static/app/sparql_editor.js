// A place to write SPARQL in, with the terms of the ontology at hand: they are offered while a word is typed, by their
// names as people know them, and put in as the IRI or with the ontology's prefix.
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
