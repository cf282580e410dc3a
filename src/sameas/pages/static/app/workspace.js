// Text, graph and ontology of one run side by side: choose in one and see it in the others. The same in the service and
// in a file without one; what is chosen and filtered is in the address.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { Tabs, number } from "./components.js";
import { filtered } from "./graph_model.js";
import { GraphPane } from "./graph_pane.js";
import { EntityList, RefusedList, RelationList } from "./list_pane.js";
import { refine } from "./router.js";
import { SelectionPane } from "./selection_pane.js";
import { TextPane } from "./text_pane.js";
import { TreePane } from "./tree_pane.js";

const KINDS = { e: "entity", r: "relation", c: "class", p: "property", x: "refused" };
const LETTERS = Object.fromEntries(Object.entries(KINDS).map(([letter, kind]) => [kind, letter]));
const NONE = [];

export function readSelection(model, query) {
  const given = query.s ?? "";
  const kind = KINDS[given[0]];
  if (!kind || given[1] !== ":") return null;
  const id = given.slice(2);
  if (kind === "entity") return { kind, id: model.find(id)?.id ?? id };
  return { kind, id: kind === "relation" || kind === "refused" ? Number(id) : id };
}

export const select = (kind, id, more = {}) => refine({ s: kind ? `${LETTERS[kind]}:${id}` : "", ...more });

function Filters({ model, query, shown }) {
  const classes = [...model.inAll.keys()].sort((one, other) => model.label(one).localeCompare(model.label(other)));
  const properties = [...model.uses.keys()].sort((one, other) => model.label(one).localeCompare(model.label(other)));
  const isFiltered = ["q", "class", "property", "min", "status"].some((name) => query[name]);
  return html`<form class="filters" role="search" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    <input type="search" aria-label="Search entities and relations" placeholder="Search entities and relations" value=${query.q ?? ""} onInput=${(event) => refine({ q: event.target.value })} />
    <select aria-label="Class" value=${query.class ?? ""} onChange=${(event) => refine({ class: event.target.value })}>
      <option value="">Every class</option>${classes.map((iri) => html`<option value=${iri}>${model.label(iri)} (${model.inAll.get(iri)})</option>`)}</select>
    <select aria-label="Property" value=${query.property ?? ""} onChange=${(event) => refine({ property: event.target.value })}>
      <option value="">Every property</option>${properties.map((iri) => html`<option value=${iri}>${model.label(iri)} (${model.uses.get(iri)})</option>`)}</select>
    <select aria-label="Status" value=${query.status ?? ""} onChange=${(event) => refine({ status: event.target.value })}>
      <option value="">Every status</option><option value="grounded">grounded</option><option value="unverified">unverified</option><option value="decided">reviewed</option><option value="undecided">not reviewed</option></select>
    <label class="least"><span>Confidence from <output>${shown.least.toFixed(2)}</output></span>
      <input type="range" min="0" max="1" step="0.05" aria-label="Least confidence" value=${shown.least} onInput=${(event) => refine({ min: event.target.value })} /></label>
    ${isFiltered && html`<button type="button" class="quiet small" onClick=${() => refine({ q: "", class: "", property: "", min: "", status: "" })}>Clear</button>`}
  </form>`;
}

// `extra` are more tabs of the side: { id, label, count, view }. `actionsFor` and `onSelectText` are a reviewer's.
export function Workspace({ model, query, extra = NONE, actionsFor, onSelectText, sideTab }) {
  const shown = useMemo(() => filtered(model, query), [model, query.q, query.class, query.property, query.min, query.status]);
  const selection = readSelection(model, query);
  const [goal, setGoal] = useState(() => placeOf(model, selection));
  const [pane, setPane] = useState("text");
  const [isLarge, setLarge] = useState(false);
  // Where one part is seen at a time, whoever asks for the queue or the decisions wants to see them.
  const isExtra = extra.some((one) => one.id === query.tab);
  useEffect(() => { if (isExtra) setPane("side"); }, [isExtra]);
  const tab = query.tab ?? sideTab ?? "selection";
  // Details begin at their heading, however far down the list one has chosen from.
  const side = useRef(null);
  useEffect(() => side.current.querySelector('[role="tabpanel"]').scrollTo(0, 0), [tab, tab === "selection" ? query.s : ""]);
  const { hot, hotRelation, evidence } = useMemo(() => highlighted(model, selection), [model, query.s]);
  const chooseEntity = (entity, place) => {
    select("entity", entity.id, { tab: query.tab === "review" ? "review" : "selection" });
    setGoal(place ?? (entity.mentions[0] ? { ...entity.mentions[0] } : null));
  };
  const chooseRelation = (relation) => {
    select("relation", relation.number, query.tab === "review" ? {} : { tab: "selection" });
    setGoal(relation.evidence[0] ? { ...relation.evidence[0] } : null);
  };
  const chooseRefused = (one) => {
    select("refused", one.number, { tab: "selection" });
    setGoal({ start: one.start, end: one.end });
  };
  const chooseClass = (iri) => {
    const again = selection?.kind === "class" && selection.id === iri;
    select(again ? "" : "class", iri, { tab: "selection" });
    const first = again ? null : model.mentions.find((mention) => model.isA(mention.entity, iri));
    if (first) setGoal({ start: first.start, end: first.end });
  };
  const chooseProperty = (iri) => {
    const again = selection?.kind === "property" && selection.id === iri;
    select(again ? "" : "property", iri, { tab: "selection" });
  };
  const tabs = [
    { id: "selection", label: "Details" },
    { id: "entities", label: "Entities", count: number(shown.entities.length) },
    { id: "relations", label: "Relations", count: number(shown.relations.length) },
    { id: "refused", label: "Refused", count: number(shown.refused.length) },
    ...extra.map(({ id, label, count }) => ({ id, label, count })),
  ];
  const more = extra.find((one) => one.id === tab);
  return html`<${Filters} model=${model} query=${query} shown=${shown} />
    <div class="pane-switch" role="group" aria-label="Shown part">${[["text", "Text"], ["graph", "Graph"], ["tree", "Ontology"], ["side", "Lists"]].map(([id, label]) =>
      html`<button type="button" key=${id} class="small" aria-pressed=${pane === id} onClick=${() => setPane(id)}>${label}</button>`)}</div>
    <div class="workspace" data-pane=${pane} data-graph=${isLarge ? "large" : undefined}>
      <div class="area area-tree"><${TreePane} model=${model} chosenClass=${selection?.kind === "class" ? selection.id : ""} chosenProperty=${selection?.kind === "property" ? selection.id : ""} onClass=${chooseClass} onProperty=${chooseProperty} /></div>
      <div class="area area-text"><${TextPane} model=${model} shown=${shown} hot=${hot} evidence=${evidence} goal=${goal} onMention=${(mention) => chooseEntity(mention.entity, { start: mention.start, end: mention.end })} onSelectText=${onSelectText} /></div>
      <div class="area area-graph"><${GraphPane} model=${model} shown=${shown} hot=${hot} hotRelation=${hotRelation} onEntity=${chooseEntity} onRelation=${chooseRelation} isLarge=${isLarge} onEnlarge=${() => setLarge(!isLarge)} /></div>
      <div class="area area-side" ref=${side}><${Tabs} label="Details and lists" name="side" tabs=${tabs} current=${more || tabs.some((one) => one.id === tab) ? tab : "selection"} onChange=${(id) => refine({ tab: id })}>
        ${more ? more.view({ chooseRelation, chooseEntity, shown, selection })
          : tab === "entities" ? html`<${EntityList} model=${model} entities=${shown.entities} chosen=${selection?.kind === "entity" ? selection.id : null} onEntity=${chooseEntity} />`
          : tab === "relations" ? html`<${RelationList} model=${model} relations=${shown.relations} chosen=${selection?.kind === "relation" ? selection.id : null} onRelation=${chooseRelation} />`
          : tab === "refused" ? html`<${RefusedList} model=${model} refused=${shown.refused} chosen=${selection?.kind === "refused" ? selection.id : null} onRefused=${chooseRefused} />`
          : html`<${SelectionPane} model=${model} shown=${shown} selection=${selection} onEntity=${chooseEntity} onRelation=${chooseRelation} onPlace=${(place) => { setGoal({ ...place }); setPane("text"); }} onClass=${chooseClass} actionsFor=${actionsFor} />`}
      <//></div>
    </div>`;
}

// Where the text should be for what a link has chosen.
function placeOf(model, selection) {
  if (selection?.kind === "entity") return model.byId.get(selection.id)?.mentions[0] ?? null;
  if (selection?.kind === "relation") return model.relations[selection.id]?.evidence[0] ?? null;
  if (selection?.kind === "refused") return model.refused[selection.id] ?? null;
  return null;
}

// What to stress for a selection: the ids of things, a relation, and stretches of the text.
function highlighted(model, selection) {
  const nothing = { hot: new Set(), hotRelation: null, evidence: NONE };
  if (!selection) return nothing;
  const { kind, id } = selection;
  if (kind === "entity") return { ...nothing, hot: new Set([id]) };
  if (kind === "class") return { ...nothing, hot: new Set(model.entities.filter((entity) => model.isA(entity, id)).map((entity) => entity.id)) };
  if (kind === "relation" && model.relations[id]) {
    const relation = model.relations[id];
    return { hot: new Set([relation.subject, relation.object].filter(Boolean)), hotRelation: relation, evidence: relation.evidence };
  }
  if (kind === "property") {
    const facts = model.relations.filter((relation) => relation.predicate === id);
    return { hot: new Set(facts.flatMap((relation) => [relation.subject, relation.object]).filter(Boolean)), hotRelation: null, evidence: facts.slice(0, 200).flatMap((relation) => relation.evidence) };
  }
  if (kind === "refused" && model.refused[id]) return { ...nothing, evidence: [model.refused[id]] };
  return nothing;
}
