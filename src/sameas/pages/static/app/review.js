// A reviewer's tools on a run: buttons on what is chosen, a queue with the doubtful first, keys for the usual decisions,
// and every decision with who and when, to be undone at will. The service checks each one; a refusal says why.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { post } from "./api.js";
import { Badge, Empty, complain, plural, toast, when } from "./components.js";
import { filtered } from "./graph_model.js";
import { Confidence, Fact } from "./list_pane.js";
import { FactForm, MergeForm, RetypeForm, SplitForm } from "./review_forms.js";
import { refine } from "./router.js";
import { readSelection, select } from "./workspace.js";

const SAID = { accept: "Accepted", reject: "Rejected", correct: "Corrected", add: "Added", retype: "Given another class", merge: "Merged", split: "Split", undo: "Undone" };

// The undecided facts, the least sure first.
export const queueOf = (relations) => relations.filter((relation) => !relation.decided)
  .sort((one, other) => (other.status === "unverified") - (one.status === "unverified") || one.confidence - other.confidence || one.number - other.number);

function Queue({ model, relations, selection, chooseRelation, decideOn, undoLast, open }) {
  const queue = useMemo(() => queueOf(relations), [relations]);
  const current = queue.find((relation) => selection?.kind === "relation" && relation.number === selection.id) ?? null;
  const box = useRef(null);
  useEffect(() => {
    if (!current && queue.length) chooseRelation(queue[0]);
  }, [queue]);
  const step = (by) => {
    const at = queue.indexOf(current);
    const next = queue[Math.min(queue.length - 1, Math.max(0, at + by))];
    if (next) chooseRelation(next);
  };
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const run = { a: () => current && decideOn("accept", current), r: () => current && decideOn("reject", current), c: () => current && open({ kind: "correct", relation: current }),
      j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), u: undoLast }[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  };
  useEffect(() => { box.current?.focus({ preventScroll: true }); }, []);
  const done = relations.length - queue.length;
  return html`<div class="queue" ref=${box} tabindex="0" onKeyDown=${keys} role="group" aria-label="Review queue">
    <p class="muted small"><strong>${plural(queue.length, "relation")}</strong> to look at, ${done} decided. Keys: <kbd>a</kbd> accept, <kbd>r</kbd> reject, <kbd>c</kbd> correct, <kbd>j</kbd> <kbd>k</kbd> next and back, <kbd>u</kbd> undo. Select words of the text to add a relation.</p>
    ${!queue.length && html`<${Empty} title="All decided">Every relation that fits the filters was looked at.<//>`}
    ${current && html`<div class="card current"><h3><${Fact} model=${model} relation=${current} /></h3>
      <div class="row"><button type="button" class="primary" onClick=${() => decideOn("accept", current)}>Accept</button><button type="button" class="danger" onClick=${() => decideOn("reject", current)}>Reject</button><button type="button" onClick=${() => open({ kind: "correct", relation: current })}>Correct</button><${Confidence} value=${current.confidence} from=${current.confidenceFrom} /></div>
      ${current.evidence.slice(0, 2).map((one) => html`<blockquote class="quote still"><bdi>${one.text}</bdi></blockquote>`)}</div>`}
    <ul class="list">${queue.slice(0, 50).map((relation) => html`<li key=${relation.number}><button type="button" class="item" aria-pressed=${relation === current} onClick=${() => chooseRelation(relation)}><${Fact} model=${model} relation=${relation} /><${Confidence} value=${relation.confidence} from=${relation.confidenceFrom} /></button></li>`)}</ul>
  </div>`;
}

function inWords(model, wish) {
  const said = wish.statement;
  const fact = said && `${said.subject.name} ${model.label(said.predicate)} ${said.object?.name ?? said.value?.value ?? ""}`;
  if (wish.action === "correct") return `${fact} → ${wish.becomes.subject.name} ${model.label(wish.becomes.predicate)} ${wish.becomes.object?.name ?? wish.becomes.value?.value ?? ""}`;
  if (wish.action === "retype") return `${wish.entity.name}: ${wish.types.map((type) => model.label(type)).join(", ")}`;
  if (wish.action === "merge") return `${wish.entity.name} into ${wish.into.name}`;
  if (wish.action === "split") return `${wish.entity.name}: ${plural(wish.mentions.length, "place")} to ${wish.name}`;
  return fact ?? "";
}

function Decisions({ model, decisions, undo }) {
  const shown = decisions.filter((one) => one.decision.wish.action !== "undo").reverse();
  if (!shown.length) return html`<${Empty} title="No decisions yet">Choose Review to begin. Decisions hold for every run of this document.<//>`;
  return html`<ul class="list decisions">${shown.map(({ decision, state, why }) => html`<li key=${decision.id} class=${state}><div class="item still">
    <span><${Badge} kind=${state === "applied" ? "good" : state === "stale" ? "warn" : "plain"}>${state === "applied" ? SAID[decision.wish.action] : state === "stale" ? "does not fit any more" : "undone"}<//> <bdi>${inWords(model, decision.wish)}</bdi></span>
    <span class="item-note">${decision.by}, ${when(decision.at)}${why && `; ${why}`}</span>
    ${state !== "undone" && html`<button type="button" class="small quiet" onClick=${() => undo(decision)}>Undo</button>`}</div></li>`)}</ul>`;
}

// Numbers change with every decision: a fact is found again by what it says.
function selectStatement(view, wanted) {
  const at = wanted ? view.relations.findIndex((one) => one.subject === wanted.subject.id && one.predicate === wanted.predicate
    && (one.object ?? "") === (wanted.object?.id ?? "") && (one.value?.value ?? "") === (wanted.value?.value ?? "")) : -1;
  if (at >= 0) select("relation", at);
}

export function useReview({ key, model, query, isOff, onView }) {
  const [form, setForm] = useState(null);
  const [words, setWords] = useState(null);
  const decisions = model?.view.decisions ?? [];
  // Throws the service's refusal, for a form to show.
  const decide = async (wish) => {
    const answer = await post(`/api/v1/runs/${key}/decisions`, wish);
    onView(answer.view);
    if (wish.action !== "undo") toast(`${SAID[wish.action]}.`, { action: { label: "Undo", run: () => undo(answer.decision) } });
    return answer;
  };
  const undo = (decision) => decide({ action: "undo", undoes: decision.id }).then((answer) => {
    toast("Undone.");
    if (query.tab === "review") selectStatement(answer.view, decision.wish.statement);
  }, complain);
  const undoLast = () => {
    const last = decisions.filter((one) => one.state !== "undone" && one.decision.wish.action !== "undo").at(-1);
    if (last) undo(last.decision);
  };
  const decideOn = (action, relation) => {
    const next = queueOf(model.relations).filter((one) => one !== relation)[0];
    const wanted = next && model.statement(next);
    return decide({ action, statement: model.statement(relation) }).then((answer) => {
      if (query.tab === "review") selectStatement(answer.view, wanted);
      else if (action === "reject") select("", "");
    }, complain);
  };
  const evidenceOf = (one) => ({ start: one.start, end: one.end, text: model.offsets.slice(one.start, one.end) });
  const actionsFor = (kind, thing) => {
    if (isOff) return null;
    if (kind === "relation") return html`<div class="row actions">
      <button type="button" class="small primary" onClick=${() => decideOn("accept", thing)}>Accept</button><button type="button" class="small danger" onClick=${() => decideOn("reject", thing)}>Reject</button>
      <button type="button" class="small" onClick=${() => setForm({ kind: "correct", relation: thing })}>Correct</button></div>`;
    if (kind === "entity") return html`<div class="row actions"><button type="button" class="small" onClick=${() => setForm({ kind: "retype", entity: thing })}>Another class</button>
      <button type="button" class="small" onClick=${() => setForm({ kind: "merge", entity: thing })}>Merge</button>${thing.mentions.length > 1 && html`<button type="button" class="small" onClick=${() => setForm({ kind: "split", entity: thing })}>Split</button>`}</div>`;
    if (kind === "refused" && thing.predicate && model.text !== null) return html`<div class="row actions"><button type="button" class="small" onClick=${() => setForm({ kind: "add", evidence: evidenceOf(thing), draft: thing })}>Add it after all</button></div>`;
    return null;
  };
  const close = () => setForm(null);
  const addFromWords = () => { setForm({ kind: "add", evidence: words }); setWords(null); };
  const shared = { model, onClose: close, decide };
  const dialog = !model || isOff ? null : html`
    ${words && !form && html`<div class="selected-words" role="status"><span><bdi>“${words.text.length > 80 ? `${words.text.slice(0, 80)}…` : words.text}”</bdi></span>
      <button type="button" class="small primary" onClick=${addFromWords}>Add a relation from these words</button><button type="button" class="small quiet" onClick=${() => setWords(null)}>Leave it</button></div>`}
    ${form?.kind === "add" && html`<${FactForm} ...${shared} evidence=${form.evidence} draft=${form.draft} />`}
    ${form?.kind === "correct" && html`<${FactForm} ...${shared} evidence=${form.relation.evidence[0]} relation=${form.relation} />`}
    ${form?.kind === "retype" && html`<${RetypeForm} ...${shared} entity=${form.entity} />`}
    ${form?.kind === "merge" && html`<${MergeForm} ...${shared} entity=${form.entity} />`}
    ${form?.kind === "split" && html`<${SplitForm} ...${shared} entity=${form.entity} />`}`;
  const standing = decisions.filter((one) => one.state === "applied" && one.decision.wish.action !== "undo").length;
  const tabs = !model || isOff ? [] : [
    { id: "review", label: "Review", count: queueOf(filtered(model, query).relations).length, view: ({ chooseRelation, shown }) => html`<${Queue} model=${model} relations=${shown.relations} selection=${readSelection(model, query)} chooseRelation=${chooseRelation} decideOn=${decideOn} undoLast=${undoLast} open=${setForm} />` },
    { id: "decisions", label: "Decisions", count: standing, view: () => html`<${Decisions} model=${model} decisions=${decisions} undo=${undo} />` },
  ];
  return { tabs, actionsFor, dialog, count: standing, start: () => refine({ tab: "review", version: "" }), onSelectText: isOff ? null : setWords };
}
