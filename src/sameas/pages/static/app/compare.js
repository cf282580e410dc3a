// Two runs, or two versions of one, side by side as a difference: what only one has, what both have, in numbers and
// colours. Entities are the same where name and class are; relations where their words are.
import { html, useMemo, useState } from "./html.js";
import { get, query as queryOf } from "./api.js";
import { Badge, Empty, Failure, Field, Loading, Tabs, number, plural, toggled, useAsked } from "./components.js";
import { GraphModel } from "./graph_model.js";
import { Fact } from "./list_pane.js";
import { addPage, href, refine } from "./router.js";

const plain = (text) => text.trim().toLocaleLowerCase();

function difference(left, right) {
  const entities = (model) => new Map(model.entities.map((entity) =>
    [`${plain(entity.name)} ${[...entity.types].sort().join(" ")}`, { model, entity }]));
  const relations = (model) => new Map(model.relations.map((relation) =>
    [[model.name(relation.subject), relation.predicate, model.objectName(relation)].map(plain).join("\n"), { model, relation }]));
  const compared = (one, other) => ({
    gone: [...one].filter(([key]) => !other.has(key)).map(([, value]) => value),
    added: [...other].filter(([key]) => !one.has(key)).map(([, value]) => value),
    same: [...one].filter(([key]) => other.has(key)).map(([, value]) => value),
  });
  return { entities: compared(entities(left), entities(right)), relations: compared(relations(left), relations(right)) };
}

// What `side` says of a row: its sign, its name on the button, and the words for those who cannot see the colour.
const SIDES = [["gone", "−", "Only on the left"], ["added", "+", "Only on the right"], ["same", "=", "In both"]];
const MOST = 1000;

function Difference({ parts, show, empty }) {
  const [hidden, setHidden] = useState(new Set(["same"]));
  const rows = SIDES.filter(([side]) => !hidden.has(side))
    .flatMap(([side, sign, label]) => parts[side].slice(0, MOST).map((one) => ({ side, sign, label, one })));
  return html`<div class="row">${SIDES.map(([side, sign, label]) => html`<button type="button" key=${side} class="small"
      aria-pressed=${!hidden.has(side)} onClick=${() => setHidden(toggled(hidden, side))}>
      <span class=${`sign sign-${side}`}>${sign}</span> ${label} <span class="count">${number(parts[side].length)}</span></button>`)}</div>
    ${rows.length === 0 && html`<${Empty}>${empty}<//>`}
    ${rows.length > 0 && html`<ul class="list difference">${rows.map(({ side, sign, label, one }) => html`<li class=${`side-${side}`}>
      <span class=${`sign sign-${side}`} aria-hidden="true">${sign}</span><span class="hidden">${label}: </span>${show(one)}</li>`)}</ul>`}`;
}

function RunOption({ run, isChosen }) {
  const { idempotencyKey } = run;
  const parts = [run.document || "a text", run.extractor.name, run.ontologyNames?.[0], run.supersededAt && "superseded", run.startedAt.slice(0, 16).replace("T", " "), idempotencyKey.slice(7, 15)];
  return html`<option value=${idempotencyKey} selected=${isChosen}>${parts.filter(Boolean).join(" · ")}</option>`;
}

// `other` is the run of the other side: runs of its text come first.
function Side({ label, name, runs, query, other }) {
  const key = query[name] ?? "", version = query[`${name}Version`] ?? "reviewed";
  const options = (list) => list.map((run) => html`<${RunOption} key=${run.idempotencyKey} run=${run} isChosen=${run.idempotencyKey === key} />`);
  const near = runs.filter((run) => run.textHash === other?.textHash);
  const set = (field) => (event) => refine({ [field]: event.target.value });
  return html`<div class="card side"><${Field} label=${label}><select value=${key} onChange=${set(name)}><option value="">Choose a run</option>
      ${near.length ? html`<optgroup label="Of the same text">${options(near)}</optgroup><optgroup label="Of other texts">${options(runs.filter((run) => !near.includes(run)))}</optgroup>` : options(runs)}
      ${key && !runs.some((run) => run.idempotencyKey === key) && html`<option key=${key} value=${key} selected>${key.slice(0, 19)}</option>`}</select><//>
    <${Field} label="Version"><select value=${version} onChange=${set(`${name}Version`)}>
      <option value="reviewed">as reviewed</option><option value="found">as found</option></select><//>
    ${key && html`<a class="button" href=${href(`/studio/${key}`, { version: version === "found" ? "found" : "" })}>Open</a>`}</div>`;
}

const FactRow = ({ model, relation }) => html`<${Fact} model=${model} relation=${relation} />`;
const EntityRow = ({ model, entity }) => html`<span><bdi>${entity.name}</bdi>
  <span class="muted"> ${entity.types.map((type) => model.label(type)).join(", ")}</span></span>`;

function share({ gone, added, same }) {
  const all = gone.length + added.length + same.length;
  return all ? `${Math.round((100 * same.length) / all)} % the same` : "none";
}

const changes = ({ gone, added }) => number(gone.length + added.length);

function Result({ parts, isSameText, query }) {
  const { relations, entities } = parts;
  const tab = query.tab === "entities" ? "entities" : "relations";
  const tabs = [{ id: "relations", label: "Relations", count: changes(relations) }, { id: "entities", label: "Entities", count: changes(entities) }];
  return html`<p class="summary"><${Badge} kind="bad">− ${plural(relations.gone.length, "relation")}<//>
      <${Badge} kind="good">+ ${plural(relations.added.length, "relation")}<//>
      <${Badge}>= ${plural(relations.same.length, "relation")}<//>
      <span class="muted">${share(relations)}; entities: ${share(entities)}</span></p>
    ${!isSameText && html`<p class="muted">The two texts are not the same.</p>`}
    <${Tabs} label="What is compared" name="compare" current=${tab} onChange=${(id) => refine({ tab: id })} tabs=${tabs}>
      ${tab === "relations"
        ? html`<${Difference} key="relations" parts=${relations} empty="The relations are the same." show=${FactRow} />`
        : html`<${Difference} key="entities" parts=${entities} empty="The entities are the same." show=${EntityRow} />`}<//>`;
}

function Compare({ query }) {
  const runs = useAsked(() => get("/api/v1/runs?limit=100"), []);
  const view = (key, version = "reviewed") => key ? get(`/api/v1/runs/${encodeURIComponent(key)}/view${queryOf({ version })}`) : null;
  const left = useAsked(() => view(query.left, query.leftVersion), [query.left, query.leftVersion]);
  const right = useAsked(() => view(query.right, query.rightVersion), [query.right, query.rightVersion]);
  const parts = useMemo(() => left.data && right.data && difference(new GraphModel(left.data), new GraphModel(right.data)), [left.data, right.data]);
  const list = runs.data?.runs ?? [];
  const isLoading = left.loading || right.loading;
  return html`<div class="page stack"><div class="page-head"><div><h1>Compare</h1><p>Two models, prompts, ontologies or versions of the same text.</p></div></div>
    <div class="sides"><${Side} label="Left" name="left" runs=${list} query=${query} other=${right.data?.run} />
      <${Side} label="Right" name="right" runs=${list} query=${query} other=${left.data?.run} /></div>
    <${Failure} error=${runs.error ?? left.error ?? right.error} />
    ${isLoading && query.left && query.right && html`<${Loading} what="Comparing" />`}
    ${!parts && !isLoading && runs.data && list.length < 2 && html`<${Empty} title="Two runs are needed" action=${html`<a class="button primary" href="#/">To Studio</a>`}>
      Extract one text twice: with another model, another extractor or another version of the ontology.<//>`}
    ${!parts && !isLoading && list.length > 1 && html`<${Empty} title=${query.left || query.right ? "Choose the other run" : "Choose two runs"}>
      Here you will see what only one of them has. Compare a run as found with the same run as reviewed to see what reviewers changed.<//>`}
    ${parts && html`<${Result} parts=${parts} isSameText=${left.data.run.textHash === right.data.run.textHash} query=${query} />`}
  </div>`;
}

addPage({ path: "/compare", title: "Compare", view: Compare, nav: "Compare", order: 30 });
