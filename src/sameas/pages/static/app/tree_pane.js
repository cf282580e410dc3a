// The ontology: its classes as a tree with counts, its properties below. Choosing one shows its things or facts.
import { html, useMemo, useState } from "./html.js";
import { number } from "./components.js";

function Branch({ model, iri, depth, chosen, onClass, open, setOpen, seen, onlyUsed }) {
  const children = (model.children.get(iri) ?? []).filter((child) => !seen.has(child) && (!onlyUsed || model.inAll.get(child)))
    .sort((one, other) => (model.inAll.get(other) ?? 0) - (model.inAll.get(one) ?? 0) || model.label(one).localeCompare(model.label(other)));
  const count = model.inAll.get(iri) ?? 0;
  const isOpen = open.has(iri) ? open.get(iri) : count > 0 || depth < 1;
  const hue = model.hues.get(iri);
  return html`<li>
    <div class="branch">
      ${children.length > 0
        ? html`<button type="button" class="quiet twist" aria-expanded=${isOpen} aria-label=${`${isOpen ? "Fold" : "Unfold"} ${model.label(iri)}`} onClick=${() => setOpen(iri, !isOpen)}>${isOpen ? "▾" : "▸"}</button>`
        : html`<span class="twist"></span>`}
      <button type="button" class=${`term${count ? "" : " unused"}`} aria-pressed=${chosen === iri} title=${model.classes.get(iri)?.comment || iri} onClick=${() => onClass(iri)} data-class=${iri}>
        <span class=${`dot ${hue === undefined ? "none" : `hue-${hue}`}`}></span><span class="term-name">${model.label(iri)}</span>${count > 0 && html`<span class="count">${number(count)}</span>`}
      </button>
    </div>
    ${children.length > 0 && isOpen && html`<ul>${children.map((child) => html`<${Branch} key=${child} model=${model} iri=${child} depth=${depth + 1} chosen=${chosen} onClass=${onClass} open=${open} setOpen=${setOpen} seen=${new Set([...seen, iri])} onlyUsed=${onlyUsed} />`)}</ul>`}
  </li>`;
}

export function TreePane({ model, chosenClass, chosenProperty, onClass, onProperty }) {
  const [open, setOpen] = useState(new Map());
  const [all, setAll] = useState(model.classes.size <= 60);
  const roots = useMemo(() => {
    const known = [...model.classes.values()].filter((one) => !(one.parents ?? []).length).map((one) => one.iri);
    const strangers = [...model.own.keys()].filter((iri) => !model.classes.has(iri));
    return [...known, ...strangers].sort((one, other) => (model.inAll.get(other) ?? 0) - (model.inAll.get(one) ?? 0) || model.label(one).localeCompare(model.label(other)));
  }, [model]);
  const properties = useMemo(() => {
    const iris = new Set([...model.uses.keys(), ...(all ? model.properties.keys() : [])]);
    return [...iris].sort((one, other) => (model.uses.get(other) ?? 0) - (model.uses.get(one) ?? 0) || model.label(one).localeCompare(model.label(other)));
  }, [model, all]);
  const shown = all ? roots : roots.filter((iri) => model.inAll.get(iri));
  return html`<section class="tree-pane" aria-label="Ontology" tabindex="0">
    <h2>${model.ontology?.title || "Ontology"}</h2>
    ${!model.ontology && html`<p class="muted small">The ontology of this run is not kept here; these are the classes that were found.</p>`}
    <div class="pane-head"><h3 class="group">Classes</h3>
      ${model.classes.size > 0 && html`<label class="check small"><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} />show unused</label>`}</div>
    <ul class="tree">${shown.map((iri) => html`<${Branch} key=${iri} model=${model} iri=${iri} depth=${0} chosen=${chosenClass} onClass=${onClass} open=${open}
      setOpen=${(one, is) => setOpen(new Map(open).set(one, is))} seen=${new Set()} onlyUsed=${!all} />`)}</ul>
    <h3 class="group">Properties</h3>
    <ul class="tree">${properties.map((iri) => html`<li key=${iri}><div class="branch"><span class="twist"></span>
      <button type="button" class=${`term${model.uses.get(iri) ? "" : " unused"}`} aria-pressed=${chosenProperty === iri} title=${model.properties.get(iri)?.comment || iri} onClick=${() => onProperty(iri)}>
        <span class="term-name">${model.label(iri)}</span>${model.uses.get(iri) && html`<span class="count">${number(model.uses.get(iri))}</span>`}</button></div></li>`)}</ul>
  </section>`;
}
