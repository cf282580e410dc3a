// The merged graph of a collection, a part at a time from the service; and one entity of it, with all that documents say of
// it and the sentences that say it.
import { html, useMemo } from "./html.js";
import { get, query } from "./api.js";
import { base, Fact, Head, place, useCollection } from "./collection_parts.js";
import { GraphExplorer, NEIGHBOURS } from "./graph_explorer.js";
import { addPage, href } from "./router.js";
import { Failure, Loading, number, plural, useAsked } from "./components.js";
import { Evidence, Types } from "./statements.js";

const FIRST = 3;

function sourceOf(id) {
  const around = (ids) => get(`${base(id)}/graph${query({ around: ids?.join(" "), limit: NEIGHBOURS })}`);
  // Where to begin: what has such a name, or the most connected.
  const begin = async (words) => {
    if (!words) return around();
    const { entities } = await get(`${base(id)}/entities${query({ q: words, limit: FIRST })}`);
    return entities.length ? around(entities.slice(0, FIRST).map((one) => one.id)) : { opened: [], entities: [], statements: [], leftOut: 0 };
  };
  return { around, begin, pageOf: (entity) => href(place(id, "entities", entity)) };
}

function GraphPage({ params, query: now }) {
  const { id } = params;
  const loaded = useCollection(id);
  const source = useMemo(() => sourceOf(id), [id]);
  return html`<div class="page graph-page stack"><${Head} id=${id} loaded=${loaded} current="graph" />
    ${loaded.collection?.documents > 0 && html`<${GraphExplorer} source=${source} terms=${loaded.terms} total=${loaded.collection.entities} query=${now} />`}
  </div>`;
}

addPage({ path: "/collections/:id/graph", title: "Graph", view: GraphPage, section: "Collections" });

// Facts by what they say, in the order in which they came.
function grouped(statements) {
  const by = new Map();
  for (const one of statements) by.set(one.predicate, [...(by.get(one.predicate) ?? []), one]);
  return [...by.values()].flat();
}

function EntityPage({ params }) {
  const { id, entity } = params;
  const loaded = useCollection(id);
  const { data, error } = useAsked(() => get(`${base(id)}/entities/${encodeURIComponent(entity)}`), [id, entity]);
  const { terms } = loaded;
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="entity" title=${data?.entity.name} />
    <${Failure} error=${error} />
    ${!error && !(data && terms) && html`<${Loading} />`}
    ${data && terms && html`
      <section class="card entity-head"><div class="row spread"><div><h2 class="entity-name"><bdi>${data.entity.name}</bdi></h2><p class="row tight"><${Types} entity=${data.entity} terms=${terms} /></p></div>
        <a class="button" href=${href(place(id, "graph"), { start: data.entity.id })}>Show in the graph</a></div>
        ${data.redirectedFrom && html`<p class="muted small">Once known here as <span class="mono">${data.redirectedFrom}</span>.</p>`}
        ${data.entity.aliases.length > 0 && html`<p>Also <bdi>${data.entity.aliases.join(", ")}</bdi></p>`}
        ${data.entity.sameAs.length > 0 && html`<p>Known as ${data.entity.sameAs.map((iri) => html`<code key=${iri}>${iri}</code> `)}</p>`}
        <p class="muted">In ${plural(data.entity.documents, "document")}, ${plural(data.mentions.length, "mention")}. <span class="mono small">${data.entity.iri}</span></p></section>
      <div class="two">
        <section class="card stack"><h2>Relations <span class="count">${number(data.statements.length)}</span></h2>
          ${data.statements.length ? html`<ul class="facts-list">${grouped(data.statements).map((one, index) => html`<${Fact} key=${index} id=${id} statement=${one} terms=${terms} />`)}</ul>` : html`<p class="muted">Nothing.</p>`}</section>
        <section class="card stack"><h2>Relations that lead to it <span class="count">${number(data.mentionedBy.length)}</span></h2>
          ${data.mentionedBy.length ? html`<ul class="facts-list">${grouped(data.mentionedBy).map((one, index) => html`<${Fact} key=${index} id=${id} statement=${one} terms=${terms} side="object" />`)}</ul>` : html`<p class="muted">Nothing.</p>`}</section>
      </div>
      ${data.truncated && html`<p class="muted">There is more than a page takes; SPARQL has all of it.</p>`}
      <section class="card stack"><h2>Mentions</h2><${Evidence} evidence=${data.mentions} documents=${data.entity.documents} /></section>`}
  </div>`;
}

addPage({ path: "/collections/:id/entities/:entity", title: "Entity", view: EntityPage, section: "Collections" });
