// A large graph, looked at a part at a time: it begins with a search or with the most connected and grows by choosing,
// never more than what somebody asked to see. All that the canvas shows is in the list below it.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { complain, Empty, Field, Loading, plural } from "./components.js";
import { Evidence, Types, value } from "./statements.js";
import { GraphPane } from "./graph_pane.js";
import { refine } from "./router.js";

// Relations that one entity brings along when it is opened.
export const NEIGHBOURS = 40;
const MOST = 1500;

// What is on the canvas, by ids: it only grows, until it is begun anew.
class Sight {
  constructor(terms, entities = new Map(), statements = new Map(), opened = new Set()) {
    Object.assign(this, { terms, byId: entities, statements, opened });
  }

  with(part) {
    const byId = new Map(this.byId), all = new Map(this.statements);
    for (const one of part.entities) if (byId.size < MOST || byId.has(one.id)) byId.set(one.id, one);
    for (const one of part.statements) {
      if (byId.has(one.subject) && (!one.object || byId.has(one.object))) all.set([one.subject, one.predicate, one.object, one.value?.value, one.value?.unit].join("\u0000"), one);
    }
    return new Sight(this.terms, byId, all, new Set([...this.opened, ...part.opened]));
  }

  get shown() {
    this.made ??= { entities: [...this.byId.values()], relations: [...this.statements.values()] };
    return this.made;
  }

  hue(entity) { return this.terms.hue(entity); }
  label(iri) { return this.terms.label(iri); }
  objectName(statement) { return statement.value ? value(statement.value) : statement.objectName; }
}

function Chosen({ source, sight, chosen, onOpen, onRelation }) {
  if (!chosen) return html`<${Empty} title="Nothing selected">Select an entity in the graph or in the list, and what it is connected with appears. Select a relation to see its sentences.<//>`;
  if (chosen.predicate) return html`<article class="stack"><h2><${Said} sight=${sight} one=${chosen} /></h2>
    <${Evidence} evidence=${chosen.evidence} documents=${chosen.documents} /></article>`;
  const entity = sight.byId.get(chosen.id) ?? chosen;
  const relations = source.relationsOf?.(entity.id) ?? sight.shown.relations.filter((one) => one.subject === entity.id || one.object === entity.id);
  const address = source.pageOf?.(entity.id);
  return html`<article class="stack"><div><h2><bdi>${entity.name}</bdi></h2><p class="row tight"><${Types} entity=${entity} terms=${sight.terms} /></p>
      ${entity.aliases?.length > 0 && html`<p class="muted small">Also <bdi>${entity.aliases.join(", ")}</bdi></p>`}</div>
    <div class="row">${address && html`<a class="button small primary" href=${address}>All relations</a>`}
      ${!sight.opened.has(entity.id) && html`<button type="button" class="small" onClick=${() => onOpen(entity)}>Open</button>`}</div>
    <ul class="plain lines">${relations.map((one, index) => html`<li key=${index}>
      <button type="button" class="quiet small line" title="See its sentences" onClick=${() => onRelation(one)}><${Said} sight=${sight} one=${one} of=${entity.id} /></button></li>`)}</ul></article>`;
}

// A relation in words, without the entity that is looked at.
const Said = ({ sight, one, of = null }) => html`${one.subject !== of && html`<bdi>${one.subjectName}</bdi> `}<span class="said">${sight.label(one.predicate)}</span> ${one.object !== of && html`<bdi>${sight.objectName(one)}</bdi>`}`;

const NONE = new Set();

// `source` gives the parts: begin(words) and around(ids), and where it has them pageOf(id) and relationsOf(id).
// `query` is of the address: q, a name to start from, or start, an id.
export function GraphExplorer({ source, terms, total, query }) {
  const [sight, setSight] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [busy, setBusy] = useState(false);
  const [left, setLeft] = useState(0);
  const [typed, setTyped] = useState(query.q ?? "");
  const latest = useRef(null);
  latest.current = sight;
  const work = async (doing) => {
    setBusy(true);
    try {
      await doing();
    } catch (refusal) {
      complain(refusal);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    work(async () => {
      const first = query.start ? await source.around([query.start]) : await source.begin(query.q);
      setSight(new Sight(terms).with(first));
      setChosen(query.start ? { id: first.opened[0] } : null);
      setLeft(0);
    });
  }, [terms, query.q, query.start]);
  const choose = (entity) => {
    setChosen(entity);
    if (!latest.current.opened.has(entity.id)) work(async () => {
      const grown = await source.around([entity.id]);
      setSight(latest.current.with(grown));
      setLeft(grown.leftOut);
    });
  };
  const hot = useMemo(() => (chosen && !chosen.predicate ? new Set([chosen.id]) : NONE), [chosen]);
  return html`<form class="find card" role="search" aria-label="Start from" onSubmit=${(event) => { event.preventDefault(); refine({ q: typed.trim(), start: "" }); }}>
      <${Field} label="Start from"><input type="search" value=${typed} onInput=${(event) => setTyped(event.target.value)} placeholder="A name; leave it empty for the most connected" /><//>
      <button type="submit" class="primary">Show</button></form>
    ${busy && !sight && html`<${Loading} />`}
    ${sight && !sight.byId.size && (query.q
      ? html`<${Empty} title="No entity has a name like that">Try a part of the name, or leave the field empty to begin with the most connected.<//>`
      : html`<${Empty} title="Nothing to draw yet">Add documents first: the graph grows as they are read.<//>`)}
    ${sight && sight.byId.size > 0 && html`<div class="graph-frame">
      <div class="graph-canvas card"><${GraphPane} model=${sight} shown=${sight.shown} hot=${hot}
        hotRelation=${chosen?.predicate ? chosen : null} onEntity=${choose} onRelation=${setChosen} /></div>
      <aside class="graph-side card" aria-label="Selection"><${Chosen} source=${source} sight=${sight} chosen=${chosen} onOpen=${choose} onRelation=${setChosen} />
        ${left > 0 && html`<p class="muted small">${plural(left, "further relation")} ${source.pageOf ? "on its own page" : "in the list above"}.</p>`}</aside></div>
    <details class="card" open><summary>${plural(sight.byId.size, "entity", "entities")} and ${plural(sight.statements.size, "relation")} shown, of ${plural(total, "entity", "entities")}</summary>
      <ul class="things">${sight.shown.entities.map((one) => html`<li key=${one.id}>
        <button type="button" class="quiet small" aria-pressed=${chosen?.id === one.id} onClick=${() => choose(one)}>
          <span class=${`dot hue-${terms.hue(one)}`} aria-hidden="true"></span><bdi>${one.name}</bdi></button></li>`)}</ul></details>`}`;
}
