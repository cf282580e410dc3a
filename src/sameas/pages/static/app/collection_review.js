// Deciding: pairs that may be one entity, what was decided, and facts that cannot all be true.
import { html, useLayoutEffect, useRef, useState } from "./html.js";
import { del, get, post, query } from "./api.js";
import { Badge, complain, Empty, Field, Loading, plural, toast, useAsked, when } from "./components.js";
import { base, EntityLink, Head, may, useCollection } from "./collection_parts.js";
import { More, usePages } from "./console_parts.js";
import { addPage } from "./router.js";
import { Evidence, Types, value } from "./statements.js";

// What speaks for or against a pair, in words; a kind that is not here is shown as it is called.
const REASONS = {
  "name-exact": "they have the same name", "name-alias": "one is also called as the other is", "name-middle": "one of them has a middle name, too", "name-initial": "one has only the initial of the first name",
  "name-acronym": "one is the acronym of the other", "name-slip": "their names differ by a typing error", "name-none": "their names have nothing in common",
  "long-word": "the typing error is in a long word", "rare-spelling": "the spelling is rare", "same-known": "both are linked to the same known entity", "known-differ": "they are linked to different known entities",
  "same-key": "they share a value that only one can have", "same-value": "they agree in", "other-value": "they differ in", "other-thing": "they differ in", shared: "both are connected with",
  "types-disjoint": "nothing can be of both classes", "types-differ": "they are of different classes",
};

// Details name properties by their IRIs.
const detailOf = (reason, terms) => reason.detail.split(" ").map((word) => (/^[a-z]+:\/\//i.test(word) ? terms.label(word) : word)).join(" ");

const rounded = (probability) => `${Math.round(probability * 100)} %`;

function Reasons({ reasons, terms }) {
  const strongest = Math.max(1, ...reasons.map((one) => Math.abs(one.weight)));
  return html`<ul class="reasons">${reasons.map((one, index) => html`<li key=${index} class=${one.weight >= 0 ? "for" : "against"}>
    <span class="weight" aria-hidden="true"><span style=${{ width: `${(Math.abs(one.weight) / strongest) * 100}%` }}></span></span>
    <span><strong>${one.weight >= 0 ? "For" : "Against"}:</strong> ${REASONS[one.kind] ?? one.kind.replaceAll(/[_-]/g, " ")}${one.detail && html` <bdi class="muted">${detailOf(one, terms)}</bdi>`}</span></li>`)}</ul>`;
}

const Side = ({ id, entity, terms }) => html`<div class="twin"><h2><${EntityLink} id=${id} entity=${entity} terms=${terms} /></h2><p class="row tight"><${Types} entity=${entity} terms=${terms} /></p>
  ${entity.aliases.length > 0 && html`<p class="small">Also <bdi>${entity.aliases.join(", ")}</bdi></p>`}<p class="muted small">${plural(entity.documents, "document")}</p></div>`;

function PairCard({ id, pair, terms, mayDecide, onDecided, first }) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const deciding = useRef(false);
  const decide = async (verdict) => {
    // A key that is pressed twice means one decision.
    if (deciding.current) return;
    deciding.current = true;
    setBusy(true);
    try {
      const made = await post(`${base(id)}/decisions`, { verdict, a: pair.a.id, b: pair.b.id, reason: reason.trim() || "decided in the web app" });
      toast(verdict === "same" ? `${pair.a.name} and ${pair.b.name} are one.` : `${pair.a.name} and ${pair.b.name} stay two.`, {
        action: { label: "Undo", run: () => del(`${base(id)}/decisions/${encodeURIComponent(made.id)}`).then(onDecided, complain) },
      });
      onDecided();
    } catch (refusal) {
      complain(refusal);
      deciding.current = false;
      setBusy(false);
    }
  };
  const card = useRef(null);
  const hasKeys = first && mayDecide;
  // Single letters are heard while the pair has the focus and nowhere else: who speaks to the browser types them, too.
  useLayoutEffect(() => { if (hasKeys) card.current.focus({ preventScroll: true }); }, [hasKeys]);
  const keys = (event) => {
    if (!hasKeys || event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const verdict = { s: "same", d: "different" }[event.key];
    if (verdict) decide(verdict);
  };
  return html`<article class="card twins" ref=${card} tabindex=${hasKeys ? 0 : undefined} onKeyDown=${keys} aria-label=${`${pair.a.name} and ${pair.b.name}`}>
    <div class="twins-sides"><${Side} id=${id} entity=${pair.a} terms=${terms} /><div class="chance"><strong>${rounded(pair.probability)}</strong><span class="muted small">likely the same</span></div><${Side} id=${id} entity=${pair.b} terms=${terms} /></div>
    <${Reasons} reasons=${pair.reasons} terms=${terms} />
    ${mayDecide && html`<div class="decide"><${Field} label="Reason"><input value=${reason} maxlength="1000" onInput=${(event) => setReason(event.target.value)} placeholder="Optional: why you think so" /><//>
      <button type="button" class="primary" aria-keyshortcuts=${first ? "s" : undefined} disabled=${busy} onClick=${() => decide("same")}>Same${first ? html` <kbd aria-hidden="true">s</kbd>` : ""}</button>
      <button type="button" aria-keyshortcuts=${first ? "d" : undefined} disabled=${busy} onClick=${() => decide("different")}>Different${first ? html` <kbd aria-hidden="true">d</kbd>` : ""}</button></div>`}
  </article>`;
}

function Decisions({ id, mayDecide, turn, onUndone }) {
  const { data } = useAsked(() => get(`${base(id)}/decisions${query({ undone: true, limit: 50 })}`), [id, turn]);
  if (!data?.decisions.length) return null;
  const undo = (one) => del(`${base(id)}/decisions/${encodeURIComponent(one.id)}`).then(onUndone, complain);
  return html`<section class="stack"><h2>Decided</h2><ul class="plain card lines">${data.decisions.map((one) => html`<li key=${one.id} class="row spread">
    <span><${Badge} kind=${one.undoneAt ? "plain" : one.verdict === "same" ? "good" : "warn"}>${one.undoneAt ? "undone" : one.verdict}<//> <bdi>${one.aName}</bdi> and <bdi>${one.bName}</bdi> <span class="muted small">by ${one.by}, ${when(one.at)}: <bdi>${one.reason}</bdi></span></span>
    ${mayDecide && !one.undoneAt && html`<button type="button" class="quiet small" onClick=${() => undo(one)}>Undo</button>`}</li>`)}</ul></section>`;
}

function Pairs({ params }) {
  const { id } = params;
  const loaded = useCollection(id);
  const [turn, setTurn] = useState(0);
  const pages = usePages(async (after) => {
    const page = await get(`${base(id)}/pairs${query({ limit: 20, after })}`);
    return { rows: page.pairs, next: page.next ?? null };
  }, [id, turn]);
  const again = () => { setTurn((now) => now + 1); loaded.reload(); };
  const mayDecide = loaded.collection && may(loaded.collection, "curator");
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="pairs" />
    ${loaded.collection?.documents > 0 && html`
      <p class="muted">Pairs that may be one entity, the likeliest first. A decision holds through every later change and can be undone.</p>
      ${pages.loading && !pages.rows.length && html`<${Loading} />`}
      ${!pages.loading && !pages.error && !pages.rows.length && html`<${Empty} title="No doubtful pairs">Every two entities are clearly the same or clearly different.<//>`}
      ${pages.rows.map((pair, index) => html`<${PairCard} key=${`${pair.a.id} ${pair.b.id}`} id=${id} pair=${pair} terms=${loaded.terms} mayDecide=${mayDecide} first=${index === 0} onDecided=${again} />`)}
      <${More} pages=${pages} />
      <${Decisions} id=${id} mayDecide=${mayDecide} turn=${turn} onUndone=${again} />`}
  </div>`;
}

function Contradiction({ id, one, terms }) {
  const what = one.kind === "functional" ? html`<span class="said">${terms.label(one.predicate)}</span>` : "classes that exclude each other";
  const title = one.other ? html`and <${EntityLink} id=${id} entity=${one.other} terms=${terms} /> are kept apart by ${what}` : one.kind === "functional" ? html`has more than one <span class="said">${terms.label(one.predicate)}</span>` : "is said to be of classes that exclude each other";
  return html`<article class="card stack"><h2><${EntityLink} id=${id} entity=${one.entity} terms=${terms} /> ${title}</h2>
    <div class="two">${one.kind === "functional"
      ? one.sides.map((side, index) => html`<section key=${index} class="claim-side"><h3><bdi>${side.value ? value(side.value) : side.objectName}</bdi></h3><${Evidence} evidence=${side.evidence} documents=${side.documents} /></section>`)
      : one.classes.map((type, index) => html`<section key=${type} class="claim-side"><h3>${terms.label(type)}</h3><${Evidence} evidence=${one.evidence[index] ?? []} /></section>`)}</div></article>`;
}

function Contradictions({ params }) {
  const { id } = params;
  const loaded = useCollection(id);
  const pages = usePages(async (after) => {
    const page = await get(`${base(id)}/contradictions${query({ limit: 20, after })}`);
    return { rows: page.contradictions, next: page.next ?? null };
  }, [id]);
  return html`<div class="page stack"><${Head} id=${id} loaded=${loaded} current="contradictions" />
    ${loaded.collection?.documents > 0 && html`<p class="muted">What cannot all be true, with every side and its sentences. Nothing is resolved silently.</p>
      ${pages.loading && !pages.rows.length && html`<${Loading} />`}
      ${!pages.loading && !pages.error && !pages.rows.length && html`<${Empty} title="No contradictions">The documents agree with each other and with the ontology.<//>`}
      ${pages.rows.map((one, index) => html`<${Contradiction} key=${index} id=${id} one=${one} terms=${loaded.terms} />`)}
      <${More} pages=${pages} />`}
  </div>`;
}

addPage({ path: "/collections/:id/pairs", title: "Same or different", view: Pairs, section: "Collections" });
addPage({ path: "/collections/:id/contradictions", title: "Contradictions", view: Contradictions, section: "Collections" });
