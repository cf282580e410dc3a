// The merged graph of a collection. It begins with a search or with the most connected and grows by choosing: never
// more than what somebody asked to see. All that the canvas shows is in the list beside it.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { get, query } from "./api.js";
import { complain, Empty, Field, Loading, number, plural } from "./components.js";
import { base, Evidence, Head, place, Types, useCollection, value } from "./collection_parts.js";
import { GraphPane } from "./graph_pane.js";
import { addPage } from "./pages.js";
import { href, refine } from "./router.js";

const FIRST = 3;
// Facts that one thing brings along when it is opened; its own page has all of them.
const NEIGHBOURS = 40;
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

const part = (id, ids) => get(`${base(id)}/graph${query({ around: ids?.join(" "), limit: NEIGHBOURS })}`);

// Where to begin: what has such a name, or the most connected.
async function begin(id, words) {
  if (!words) return part(id);
  const { entities } = await get(`${base(id)}/entities${query({ q: words, limit: FIRST })}`);
  return entities.length ? part(id, entities.slice(0, FIRST).map((one) => one.id)) : { opened: [], entities: [], statements: [], leftOut: 0 };
}

function Chosen({ id, sight, chosen, onOpen, onFact }) {
  if (!chosen) return html`<p class="muted">Choose a thing on the canvas or in the list to open it: what it is connected with appears. Choose a fact to see its sentences.</p>`;
  if (chosen.predicate) return html`<article class="stack"><h2><bdi>${chosen.subjectName}</bdi> <span class="said">${sight.label(chosen.predicate)}</span> <bdi>${sight.objectName(chosen)}</bdi></h2><${Evidence} evidence=${chosen.evidence} documents=${chosen.documents} /></article>`;
  const entity = sight.byId.get(chosen.id) ?? chosen;
  const facts = sight.shown.relations.filter((one) => one.subject === entity.id || one.object === entity.id);
  return html`<article class="stack"><div><h2><bdi>${entity.name}</bdi></h2><p class="row tight"><${Types} entity=${entity} terms=${sight.terms} /></p></div>
    <div class="row"><a class="button small primary" href=${href(place(id, "entities", entity.id))}>All facts</a>${!sight.opened.has(entity.id) && html`<button type="button" class="small" onClick=${() => onOpen(entity)}>Open</button>`}</div>
    <ul class="plain lines">${facts.map((one, index) => html`<li key=${index}><button type="button" class="quiet small line" title="See its sentences" onClick=${() => onFact(one)}>${one.subject === entity.id ? "" : html`<bdi>${one.subjectName}</bdi> `}<span class="said">${sight.label(one.predicate)}</span> ${one.object === entity.id ? "" : html`<bdi>${sight.objectName(one)}</bdi>`}</button></li>`)}</ul></article>`;
}

const NONE = new Set();

function GraphPage({ params, query: now }) {
  const { id } = params;
  const loaded = useCollection(id);
  const [sight, setSight] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [busy, setBusy] = useState(false);
  const [left, setLeft] = useState(0);
  const [typed, setTyped] = useState(now.q ?? "");
  const latest = useRef(null);
  latest.current = sight;
  const { terms } = loaded;
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
    if (!terms) return;
    work(async () => {
      const first = now.start ? await part(id, [now.start]) : await begin(id, now.q);
      setSight(new Sight(terms).with(first));
      setChosen(now.start ? { id: first.opened[0] } : null);
      setLeft(0);
    });
  }, [terms, now.q, now.start]);
  const choose = (entity) => {
    setChosen(entity);
    if (!latest.current.opened.has(entity.id)) work(async () => {
      const grown = await part(id, [entity.id]);
      setSight(latest.current.with(grown));
      setLeft(grown.leftOut);
    });
  };
  const hot = useMemo(() => (chosen && !chosen.predicate ? new Set([chosen.id]) : NONE), [chosen]);
  return html`<div class="page graph-page stack"><${Head} id=${id} loaded=${loaded} current="graph" />
    ${loaded.collection && html`<form class="find card" role="search" aria-label="Start from" onSubmit=${(event) => { event.preventDefault(); refine({ q: typed.trim(), start: "" }); }}>
      <${Field} label="Start from"><input type="search" value=${typed} onInput=${(event) => setTyped(event.target.value)} placeholder="A name; nothing for the most connected" /><//>
      <button type="submit" class="primary">Begin</button></form>
    ${busy && !sight && html`<${Loading} />`}
    ${sight && !sight.byId.size && html`<${Empty}>${now.q ? "Nothing has a name like that." : "There is nothing in this collection yet."}<//>`}
    ${sight && sight.byId.size > 0 && html`<div class="graph-frame">
      <div class="graph-canvas card"><${GraphPane} model=${sight} shown=${sight.shown} hot=${hot} hotRelation=${chosen?.predicate ? chosen : null} onEntity=${choose} onRelation=${setChosen} /></div>
      <aside class="graph-side card" aria-label="What is chosen"><${Chosen} id=${id} sight=${sight} chosen=${chosen} onOpen=${choose} onFact=${setChosen} />
        ${left > 0 && html`<p class="muted small">${plural(left, "further fact")} on its own page.</p>`}</aside></div>
    <details class="card" open><summary>${plural(sight.byId.size, "thing")} and ${plural(sight.statements.size, "fact")} shown, of ${number(loaded.collection.entities)} things</summary>
      <ul class="things">${sight.shown.entities.map((one) => html`<li key=${one.id}><button type="button" class="quiet small" aria-pressed=${chosen?.id === one.id} onClick=${() => choose(one)}><span class=${`hue-dot hue-${terms.hue(one)}`} aria-hidden="true"></span><bdi>${one.name}</bdi></button></li>`)}</ul></details>`}`}
  </div>`;
}

addPage({ path: "/collections/:id/graph", title: "Graph", view: GraphPage, section: "Collections" });
