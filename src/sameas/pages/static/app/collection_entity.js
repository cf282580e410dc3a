// One thing of a collection: all that documents say of it, with the sentences that say it.
import { html } from "./html.js";
import { get } from "./api.js";
import { Failure, Loading, number, plural, useAsked } from "./components.js";
import { base, Fact, Head, place, useCollection } from "./collection_parts.js";
import { addPage } from "./pages.js";
import { href } from "./router.js";
import { Evidence, Types } from "./statements.js";

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
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="entity" />
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
        <section class="card stack"><h2>What is said of it <span class="count">${number(data.statements.length)}</span></h2>
          ${data.statements.length ? html`<ul class="facts-list">${grouped(data.statements).map((one, index) => html`<${Fact} key=${index} id=${id} statement=${one} terms=${terms} />`)}</ul>` : html`<p class="muted">Nothing.</p>`}</section>
        <section class="card stack"><h2>What leads to it <span class="count">${number(data.mentionedBy.length)}</span></h2>
          ${data.mentionedBy.length ? html`<ul class="facts-list">${grouped(data.mentionedBy).map((one, index) => html`<${Fact} key=${index} id=${id} statement=${one} terms=${terms} side="object" />`)}</ul>` : html`<p class="muted">Nothing.</p>`}</section>
      </div>
      ${data.truncated && html`<p class="muted">There is more than a page takes; SPARQL has all of it.</p>`}
      <section class="card stack"><h2>Where it is named</h2><${Evidence} evidence=${data.mentions} documents=${data.entity.documents} /></section>`}
  </div>`;
}

addPage({ path: "/collections/:id/entities/:entity", title: "Entity", view: EntityPage, section: "Collections" });
