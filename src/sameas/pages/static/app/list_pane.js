// All that the graph shows, as lists: entities, relations, and what was refused with the reason. Long lists grow by pages.
import { html, useEffect, useState } from "./html.js";
import { Badge, Empty, Status, number, plural } from "./components.js";

const PAGE = 100;
export const REASONS = {
  empty_name: "it has no name", not_in_text: "the text does not say it", unknown_type: "the ontology has no such class", no_type: "no class was given",
  unknown_relation: "the ontology has no such property", domain_mismatch: "the subject is of the wrong class", range_mismatch: "the object is of the wrong class",
  self_relation: "both ends are the same", duplicate: "it was found already", no_evidence: "no words support it", evidence_too_far: "its ends are too far apart in the text",
  unresolved_end: "an end was not found", not_supported: "the words do not support it", not_checked: "it could not be checked", negated: "the text denies it",
  hedged: "the text doubts it", no_longer: "the text says that it is over", ambiguous_type: "its class is not clear", addressed_to_model: "the words are addressed to the model",
  not_asserted: "nothing asserts it", rejected_in_review: "a reviewer rejected it",
};

function More({ count, shown, onMore }) {
  return count > shown && html`<button type="button" class="more" onClick=${onMore}>Show more of ${number(count)}</button>`;
}

function usePages(list) {
  const [size, setSize] = useState(PAGE);
  useEffect(() => setSize(PAGE), [list]);
  return [list.slice(0, size), () => setSize(size + PAGE * 5), size];
}

// Why a list is empty: because of the filters, because the run goes on, or because the text says nothing of the kind.
const Nothing = ({ model, what, all }) => html`<${Empty}>${all.length ? `No ${what} fit. Remove filters, or lower the confidence.`
  : model.isUnderWay ? `No ${what} yet: they appear here as they are found.` : `The run found no ${what}.`}<//>`;

export const Confidence = ({ value, from }) => html`<span class="confidence" title=${`Confidence, by ${from === "reviewer" ? "a reviewer" : from === "agreement" ? "the agreement of samples" : from === "model" ? "the model" : "rules"}`}>
  <span class="bar" aria-hidden="true"><span style=${{ inlineSize: `${Math.round(value * 100)}%` }}></span></span>${from === "reviewer" ? "reviewed" : value.toFixed(2)}</span>`;

export function EntityList({ model, entities, chosen, onEntity }) {
  const [page, more, size] = usePages(entities);
  if (!entities.length) return html`<${Nothing} model=${model} what="entities" all=${model.entities} />`;
  return html`<ul class="list" aria-label="Entities">${page.map((entity) => html`<li key=${entity.id}>
    <button type="button" class="item" aria-pressed=${chosen === entity.id} onClick=${() => onEntity(entity)} data-entity=${entity.id}>
      <span class=${`dot hue-${model.hue(entity)}`}></span><bdi class="item-name">${entity.name}</bdi>
      <span class="item-note">${entity.types.map((type) => model.label(type)).join(", ")}</span>
      <span class="count" title="places in the text">${number(entity.mentions.length)}</span>
    </button></li>`)}</ul><${More} count=${entities.length} shown=${size} onMore=${more} />`;
}

export const Fact = ({ model, relation }) => html`<span class="fact"><bdi>${model.name(relation.subject)}</bdi> <span class="predicate">${model.label(relation.predicate)}</span> <bdi>${model.objectName(relation)}</bdi></span>`;

export function RelationList({ model, relations, chosen, onRelation }) {
  const [page, more, size] = usePages(relations);
  if (!relations.length) return html`<${Nothing} model=${model} what="relations" all=${model.relations} />`;
  return html`<ul class="list" aria-label="Relations">${page.map((relation) => html`<li key=${relation.number}>
    <button type="button" class="item" aria-pressed=${chosen === relation.number} onClick=${() => onRelation(relation)} data-relation=${relation.number}>
      <${Fact} model=${model} relation=${relation} />
      ${relation.decided && html`<${Badge} kind="good">${relation.decided}ed<//>`}${relation.status === "unverified" && html`<${Status} status="unverified" />`}
      <${Confidence} value=${relation.confidence} from=${relation.confidenceFrom} />
    </button></li>`)}</ul><${More} count=${relations.length} shown=${size} onMore=${more} />`;
}

export function RefusedList({ model, refused, chosen, onRefused }) {
  const [page, more, size] = usePages(refused);
  if (!refused.length) return html`<${Empty}>No claim was refused.<//>`;
  return html`<ul class="list" aria-label="Refused claims">${page.map((one) => html`<li key=${one.number}>
    <button type="button" class="item" aria-pressed=${chosen === one.number} onClick=${() => onRefused(one)} data-refused=${one.number}>
      <span class="fact"><bdi>${one.subject || "?"}</bdi> ${one.predicate && html`<span class="predicate">${model.label(one.predicate)}</span>`} <bdi>${one.object}</bdi></span>
      <span class="item-note">${REASONS[one.code] ?? one.code}${one.count > 1 ? `, ${plural(one.count, "time")}` : ""}</span>
    </button></li>`)}</ul><${More} count=${refused.length} shown=${size} onMore=${more} />`;
}
