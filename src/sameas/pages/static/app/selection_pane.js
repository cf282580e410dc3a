// What is chosen, in words: a thing with its facts and places, a fact with its evidence, a class with its things, a
// refused claim with its reason.
import { html } from "./html.js";
import { Badge, Empty, Status, localName, number, plural } from "./components.js";
import { Confidence, EntityList, Fact, REASONS, RelationList } from "./list_pane.js";

const Quote = ({ evidence, onGo }) => html`<button type="button" class="quote" onClick=${onGo} title="Show it in the text"><bdi>${evidence.text}</bdi></button>`;

// The relations that fit the filters, as everywhere else; of the others, how many there are.
function Relations({ model, shown, all, onRelation }) {
  const fitting = new Set(shown.relations);
  const relations = all.filter((relation) => fitting.has(relation));
  return html`<h3>${plural(relations.length, "relation")}</h3>
    ${relations.length > 0 && html`<${RelationList} model=${model} relations=${relations} onRelation=${onRelation} />`}
    ${relations.length < all.length && html`<p class="muted small">${number(all.length - relations.length)} more ${all.length - relations.length === 1 ? "does" : "do"} not fit the filters.</p>`}`;
}

function EntityDetails({ model, entity, shown, onRelation, onPlace, onClass, actions }) {
  return html`<article class="details" aria-label=${entity.name}>
    <h2><span class=${`dot hue-${model.hue(entity)}`}></span><bdi>${entity.name}</bdi></h2>
    <div class="row">${entity.types.map((type) => html`<button type="button" class="small chip" onClick=${() => onClass(type)}>${model.label(type)}</button>`)}
      <${Confidence} value=${entity.confidence} from=${entity.confidenceFrom} /></div>
    ${entity.aliases.length > 0 && html`<p class="muted">Also: <bdi>${entity.aliases.join(", ")}</bdi></p>`}
    ${entity.individual && html`<p class="muted mono small">${entity.individual}</p>`}
    ${actions}
    <${Relations} model=${model} shown=${shown} all=${model.relationsOf.get(entity.id) ?? []} onRelation=${onRelation} />
    <h3>${plural(entity.mentions.length, "place")} in the text</h3>
    <ul class="places">${entity.mentions.slice(0, 60).map((mention) => html`<li><button type="button" class="small chip" onClick=${() => onPlace(mention)}><bdi>${mention.text}</bdi> <span class="muted">at ${mention.start}</span></button></li>`)}</ul>
  </article>`;
}

function RelationDetails({ model, relation, onEntity, onPlace, actions }) {
  const object = model.byId.get(relation.object);
  return html`<article class="details" aria-label="Relation">
    <h2><${Fact} model=${model} relation=${relation} /></h2>
    <div class="row"><${Status} status=${relation.status} /><${Confidence} value=${relation.confidence} from=${relation.confidenceFrom} />${relation.decided && html`<${Badge} kind="good">${relation.decided}ed by a reviewer<//>`}</div>
    <div class="row"><button type="button" class="small chip" onClick=${() => onEntity(model.byId.get(relation.subject))}><bdi>${model.name(relation.subject)}</bdi></button><span class="muted">→</span>
      ${object ? html`<button type="button" class="small chip" onClick=${() => onEntity(object)}><bdi>${object.name}</bdi></button>`
        : html`<span class="mono small">${relation.value.value} <span class="muted">${localName(relation.value.datatype)}</span></span>`}</div>
    ${actions}
    <h3>Said here</h3>
    ${relation.evidence.map((evidence) => html`<${Quote} evidence=${evidence} onGo=${() => onPlace(evidence)} />`)}
  </article>`;
}

function ClassDetails({ model, iri, shown, onEntity }) {
  const things = model.entities.filter((entity) => model.isA(entity, iri));
  return html`<article class="details" aria-label=${model.label(iri)}>
    <h2><span class=${`dot ${model.hues.has(iri) ? `hue-${model.hues.get(iri)}` : "none"}`}></span>${model.label(iri)}</h2>
    <p class="muted mono small">${iri}</p>${model.classes.get(iri)?.comment && html`<p>${model.classes.get(iri).comment}</p>`}
    <h3>${plural(things.length, "entity", "entities")}</h3>
    ${things.length > 0 ? html`<${EntityList} model=${model} entities=${things} onEntity=${onEntity} />` : html`<p class="muted">The text names none.</p>`}
  </article>`;
}

function PropertyDetails({ model, iri, shown, onRelation }) {
  const known = model.properties.get(iri);
  return html`<article class="details" aria-label=${model.label(iri)}>
    <h2>${model.label(iri)}</h2><p class="muted mono small">${iri}</p>${known?.comment && html`<p>${known.comment}</p>`}
    ${known && html`<p class="muted">From ${(known.domain ?? []).map((one) => model.label(one)).join(" or ") || "anything"} to ${(known.range ?? []).map((one) => model.label(one)).join(" or ") || "anything"}</p>`}
    <${Relations} model=${model} shown=${shown} all=${model.relations.filter((relation) => relation.predicate === iri)} onRelation=${onRelation} />
  </article>`;
}

function RefusedDetails({ model, one, onPlace, actions }) {
  const words = model.text === null ? "" : model.offsets.slice(one.start, one.end);
  return html`<article class="details" aria-label="Refused claim">
    <h2><span class="fact"><bdi>${one.subject}</bdi> ${one.predicate && html`<span class="predicate">${model.label(one.predicate)}</span>`} <bdi>${one.object}</bdi></span></h2>
    <p><${Badge} kind="warn">refused<//> ${REASONS[one.code] ?? one.code}.</p>
    <p class="muted small">Code <code>${one.code}</code>, in ${one.stage.replaceAll("_", " ")}${one.detail && html`: <span>${one.detail}</span>`}</p>
    ${actions}
    ${words && html`<h3>Where</h3><${Quote} evidence=${{ text: words }} onGo=${() => onPlace(one)} />`}
  </article>`;
}

// `selection`: { kind, id }; `actionsFor(kind, thing)` gives the buttons of a reviewer, if any.
export function SelectionPane({ model, shown, selection, onEntity, onRelation, onPlace, onClass, actionsFor = () => null }) {
  const { kind, id } = selection ?? {};
  if (kind === "entity" && model.byId.has(id)) {
    const entity = model.byId.get(id);
    return html`<${EntityDetails} ...${{ model, entity, shown, onRelation, onPlace, onClass }} actions=${actionsFor("entity", entity)} />`;
  }
  if (kind === "relation" && model.relations[id]) {
    const relation = model.relations[id];
    return html`<${RelationDetails} ...${{ model, relation, onEntity, onPlace }} actions=${actionsFor("relation", relation)} />`;
  }
  if (kind === "class") return html`<${ClassDetails} ...${{ model, iri: id, shown, onEntity }} />`;
  if (kind === "property") return html`<${PropertyDetails} ...${{ model, iri: id, shown, onRelation }} />`;
  if (kind === "refused" && model.refused[id]) {
    const one = model.refused[id];
    return html`<${RefusedDetails} ...${{ model, one, onPlace }} actions=${actionsFor("refused", one)} />`;
  }
  return html`<${Empty} title="Nothing selected">Select a name in the text, a node of the graph or a class, and see it in all of them.<//>`;
}
