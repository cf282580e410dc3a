// Two runs, or two versions of one, side by side as a difference: what only one has, what both have, in numbers and
// colours. Entities are the same where name and class are; relations where their words are.
import { html, useMemo, useState } from "./html.js";
import { get } from "./api.js";
import { Badge, Empty, Failure, Field, Loading, Tabs, number, plural, useAsked } from "./components.js";
import { GraphModel } from "./graph_model.js";
import { addPage } from "./pages.js";
import { href, refine } from "./router.js";

const plain = (text) => text.trim().toLocaleLowerCase();

export function difference(left, right) {
  const entities = (model) => new Map(model.entities.map((entity) => [`${plain(entity.name)} ${[...entity.types].sort().join(" ")}`, { model, entity }]));
  const relations = (model) => new Map(model.relations.map((relation) => [[model.name(relation.subject), relation.predicate, model.objectName(relation)].map(plain).join("\n"), { model, relation }]));
  const compared = (one, other) => ({
    gone: [...one].filter(([key]) => !other.has(key)).map(([, value]) => value),
    added: [...other].filter(([key]) => !one.has(key)).map(([, value]) => value),
    same: [...one].filter(([key]) => other.has(key)).map(([, value]) => value),
  });
  return { entities: compared(entities(left), entities(right)), relations: compared(relations(left), relations(right)) };
}

const SIDES = [["gone", "−", "Only on the left"], ["added", "+", "Only on the right"], ["same", "=", "In both"]];

function Difference({ parts, show, empty }) {
  const [hidden, setHidden] = useState(new Set(["same"]));
  const toggle = (side) => setHidden((now) => { const next = new Set(now); if (!next.delete(side)) next.add(side); return next; });
  const rows = SIDES.filter(([side]) => !hidden.has(side)).flatMap(([side, sign]) => parts[side].slice(0, 1000).map((one) => ({ side, sign, one })));
  return html`<div class="row">${SIDES.map(([side, sign, label]) => html`<button type="button" key=${side} class="small" aria-pressed=${!hidden.has(side)} onClick=${() => toggle(side)}><span class=${`sign sign-${side}`}>${sign}</span> ${label} <span class="count">${number(parts[side].length)}</span></button>`)}</div>
    ${rows.length ? html`<ul class="list difference">${rows.map(({ side, sign, one }) => html`<li class=${`side-${side}`}><span class=${`sign sign-${side}`} aria-hidden="true">${sign}</span><span class="hidden">${side === "gone" ? "only on the left: " : side === "added" ? "only on the right: " : "in both: "}</span>${show(one)}</li>`)}</ul>` : html`<${Empty}>${empty}<//>`}`;
}

function Side({ label, name, runs, query }) {
  const key = query[name] ?? "", version = query[`${name}Version`] ?? "reviewed";
  return html`<div class="card stack"><${Field} label=${label}><select value=${key} onChange=${(event) => refine({ [name]: event.target.value })}><option value="">Choose a run</option>
      ${runs.map((run) => html`<option key=${run.idempotencyKey} value=${run.idempotencyKey} selected=${run.idempotencyKey === key}>${run.document || "a text"} · ${run.extractor.name} · ${run.ontologyNames?.[0] ?? ""} · ${run.startedAt.slice(0, 16).replace("T", " ")} · ${run.idempotencyKey.slice(7, 15)}</option>`)}
      ${key && !runs.some((run) => run.idempotencyKey === key) && html`<option key=${key} value=${key} selected>${key.slice(0, 19)}</option>`}</select><//>
    <${Field} label="Version"><select value=${version} onChange=${(event) => refine({ [`${name}Version`]: event.target.value })}><option value="reviewed">as reviewed</option><option value="found">as found</option></select><//>
    ${key && html`<a href=${href(`/studio/${key}`, { version: version === "found" ? "found" : "" })}>Open it</a>`}</div>`;
}

function Compare({ query }) {
  const runs = useAsked(() => get("/api/v1/runs?limit=100"), []);
  const view = (name) => query[name] ? get(`/api/v1/runs/${query[name]}/view?version=${query[`${name}Version`] ?? "reviewed"}`) : null;
  const left = useAsked(() => view("left"), [query.left, query.leftVersion]);
  const right = useAsked(() => view("right"), [query.right, query.rightVersion]);
  const parts = useMemo(() => left.data && right.data && difference(new GraphModel(left.data), new GraphModel(right.data)), [left.data, right.data]);
  const tab = query.tab === "entities" ? "entities" : "relations";
  const share = (one) => { const all = one.gone.length + one.added.length + one.same.length; return all ? `${Math.round((100 * one.same.length) / all)} % the same` : "nothing"; };
  return html`<div class="page stack"><div class="page-head"><div><h1>Compare</h1><p>Two models, prompts, ontologies or versions of the same text.</p></div></div>
    <div class="pair"><${Side} label="Left" name="left" runs=${runs.data?.runs ?? []} query=${query} /><${Side} label="Right" name="right" runs=${runs.data?.runs ?? []} query=${query} /></div>
    <${Failure} error=${runs.error ?? left.error ?? right.error} />
    ${(left.loading || right.loading) && query.left && query.right && html`<${Loading} what="Comparing" />`}
    ${!parts && !left.loading && !right.loading && html`<${Empty} title="Choose two">The difference shows here.<//>`}
    ${parts && html`<p class="summary"><${Badge} kind="bad">− ${plural(parts.relations.gone.length, "relation")}<//> <${Badge} kind="good">+ ${plural(parts.relations.added.length, "relation")}<//> <${Badge}>= ${plural(parts.relations.same.length, "relation")}<//> <span class="muted">${share(parts.relations)}; entities: ${share(parts.entities)}</span></p>
      ${left.data.run.textHash !== right.data.run.textHash && html`<p class="muted">The two texts are not the same.</p>`}
      <${Tabs} label="What is compared" name="compare" current=${tab} onChange=${(id) => refine({ tab: id })} tabs=${[{ id: "relations", label: "Relations", count: number(parts.relations.gone.length + parts.relations.added.length) }, { id: "entities", label: "Entities", count: number(parts.entities.gone.length + parts.entities.added.length) }]}>
        ${tab === "relations" ? html`<${Difference} key="relations" parts=${parts.relations} empty="The relations are the same." show=${({ model, relation }) => html`<span class="fact"><bdi>${model.name(relation.subject)}</bdi> <span class="predicate">${model.label(relation.predicate)}</span> <bdi>${model.objectName(relation)}</bdi></span>`} />`
          : html`<${Difference} key="entities" parts=${parts.entities} empty="The entities are the same." show=${({ model, entity }) => html`<span><bdi>${entity.name}</bdi> <span class="muted">${entity.types.map((type) => model.label(type)).join(", ")}</span></span>`} />`}<//>`}
  </div>`;
}

addPage({ path: "/compare", title: "Compare", view: Compare, nav: "Compare", order: 30 });
