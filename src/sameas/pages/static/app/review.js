// A reviewer's tools on a run: buttons on what is chosen, a queue with the doubtful first, keys for the usual decisions,
// and every decision with who and when, to be undone at will. The service checks each one; a refusal says why.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { post } from "./api.js";
import { Badge, Empty, complain, plural, shorten, toast, when } from "./components.js";
import { filtered } from "./graph_model.js";
import { Confidence, Fact } from "./list_pane.js";
import { FactForm, MergeForm, RetypeForm, SplitForm } from "./review_forms.js";
import { refine } from "./router.js";
import { readSelection, select } from "./workspace.js";

const SAID = { accept: "Accepted", reject: "Rejected", correct: "Corrected", add: "Added", retype: "Class changed", merge: "Merged", split: "Split", undo: "Undone" };

// The undecided facts, the least sure first.
const queueOf = (relations) => relations.filter((relation) => !relation.decided)
  .sort((one, other) => (other.status === "unverified") - (one.status === "unverified") || one.confidence - other.confidence || one.number - other.number);

const QUEUED = 50;

const KeysHelp = ({ left, done }) => html`<p class="muted small"><strong>${plural(left, "relation")}</strong> to review, ${done} decided.${" "}
  <kbd>j</kbd> <kbd>k</kbd> next and back, <kbd>u</kbd> undo. To add a relation, select the words that state it.</p>`;

const KeyButton = ({ letter, kind = "", onClick, children }) => html`<button type="button" class=${kind} aria-keyshortcuts=${letter} onClick=${onClick}>${children} <kbd aria-hidden="true">${letter}</kbd></button>`;

function Current({ model, relation, onAccept, onReject, onCorrect }) {
  return html`<div class="card current"><h3><${Fact} model=${model} relation=${relation} /></h3>
    <div class="row"><${KeyButton} letter="a" kind="primary" onClick=${onAccept}>Accept<//><${KeyButton} letter="r" kind="danger" onClick=${onReject}>Reject<//><${KeyButton} letter="c" onClick=${onCorrect}>Correct<//>
      <${Confidence} value=${relation.confidence} from=${relation.confidenceFrom} /></div>
    ${relation.evidence.slice(0, 2).map((one) => html`<blockquote class="quote still"><bdi>${one.text}</bdi></blockquote>`)}</div>`;
}

function Queue({ model, relations, selection, chooseRelation, decideOn, undoLast, open }) {
  const queue = useMemo(() => queueOf(relations), [relations]);
  const current = queue.find((relation) => selection?.kind === "relation" && relation.number === selection.id) ?? null;
  const box = useRef(null);
  useEffect(() => {
    if (!current && queue.length) chooseRelation(queue[0]);
  }, [queue]);
  useEffect(() => { box.current?.focus({ preventScroll: true }); }, []);
  const step = (by) => {
    const next = queue[Math.min(queue.length - 1, Math.max(0, queue.indexOf(current) + by))];
    if (next) chooseRelation(next);
  };
  const accept = () => current && decideOn("accept", current);
  const reject = () => current && decideOn("reject", current);
  const correct = () => current && open({ kind: "correct", relation: current });
  const next = () => step(1), back = () => step(-1);
  const byKey = { a: accept, r: reject, c: correct, j: next, k: back, ArrowDown: next, ArrowUp: back, u: undoLast };
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const run = byKey[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  };
  return html`<div class="queue" ref=${box} tabindex="0" onKeyDown=${keys} role="group" aria-label="Review queue">
    <${KeysHelp} left=${queue.length} done=${relations.length - queue.length} />
    ${!queue.length && html`<${Empty} title="All decided">Every relation that fits the filters has been reviewed.<//>`}
    ${current && html`<${Current} model=${model} relation=${current} onAccept=${accept} onReject=${reject} onCorrect=${correct} />`}
    <ul class="list">${queue.slice(0, QUEUED).map((relation) => html`<li key=${relation.number}>
      <button type="button" class="item" aria-pressed=${relation === current} onClick=${() => chooseRelation(relation)}>
        <${Fact} model=${model} relation=${relation} /><${Confidence} value=${relation.confidence} from=${relation.confidenceFrom} /></button></li>`)}</ul>
    ${queue.length > QUEUED && html`<p class="muted small">and ${plural(queue.length - QUEUED, "further relation")}</p>`}
  </div>`;
}

function inWords(model, { action, statement, becomes, entity, into, types, mentions, name }) {
  const fact = (one) => `${one.subject.name} ${model.label(one.predicate)} ${one.object?.name ?? one.value?.value ?? ""}`;
  switch (action) {
    case "correct": return `${fact(statement)} → ${fact(becomes)}`;
    case "retype": return `${entity.name}: ${types.map((type) => model.label(type)).join(", ")}`;
    case "merge": return `${entity.name} into ${into.name}`;
    case "split": return `${entity.name}: ${plural(mentions.length, "place")} to ${name}`;
    default: return statement ? fact(statement) : "";
  }
}

const STATE = { applied: "good", stale: "warn", undone: "plain" };

function Decisions({ model, decisions, undo }) {
  const shown = decisions.filter((one) => one.decision.wish.action !== "undo").reverse();
  if (!shown.length) return html`<${Empty} title="No decisions yet">Choose Review to begin. Decisions hold for every run of this document.<//>`;
  const told = { stale: "no longer fits", undone: "undone" };
  return html`<ul class="list decisions">${shown.map(({ decision, state, why }) => html`<li key=${decision.id} class=${state}><div class="item still">
    <span><${Badge} kind=${STATE[state]}>${told[state] ?? SAID[decision.wish.action]}<//> <bdi>${inWords(model, decision.wish)}</bdi></span>
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
  // Throws the service's refusal, for a form to show. `choose` gets the view in the same breath as the page: numbers
  // have changed, and the one in the address may already be another's.
  const decide = async (wish, choose = () => {}) => {
    const answer = await post(`/api/v1/runs/${key}/decisions`, wish);
    onView(answer.view);
    choose(answer.view);
    if (wish.action !== "undo") toast(`${SAID[wish.action]}.`, { action: { label: "Undo", run: () => undo(answer.decision) } });
    return answer;
  };
  const undo = (decision) => decide({ action: "undo", undoes: decision.id }, (view) => {
    if (query.tab === "review") selectStatement(view, decision.wish.statement);
  }).then(() => toast("Undone."), complain);
  const undoLast = () => {
    const last = decisions.filter((one) => one.state !== "undone" && one.decision.wish.action !== "undo").at(-1);
    if (last) undo(last.decision);
  };
  // One at a time: a key that is pressed twice means one decision.
  const isBusy = useRef(false);
  const decideOn = async (action, relation) => {
    if (isBusy.current) return;
    isBusy.current = true;
    const queue = queueOf(filtered(model, query).relations), at = queue.indexOf(relation);
    const next = queue[at + 1] ?? queue[at - 1];
    const wanted = next && model.statement(next);
    try {
      await decide({ action, statement: model.statement(relation) }, (view) => {
        if (query.tab === "review") selectStatement(view, wanted);
        else if (action === "reject") select("", "");
      });
    } catch (refusal) {
      complain(refusal);
    } finally {
      isBusy.current = false;
    }
  };
  const evidenceOf = (one) => ({ start: one.start, end: one.end, text: model.offsets.slice(one.start, one.end) });
  const button = (label, onClick, kind = "") => html`<button type="button" class=${`small ${kind}`} onClick=${onClick}>${label}</button>`;
  const actionsFor = (kind, thing) => {
    if (isOff) return null;
    if (kind === "relation") return html`<div class="row actions">${button("Accept", () => decideOn("accept", thing), "primary")}
      ${button("Reject", () => decideOn("reject", thing), "danger")}${button("Correct", () => setForm({ kind: "correct", relation: thing }))}</div>`;
    if (kind === "entity") return html`<div class="row actions">${button("Change class", () => setForm({ kind: "retype", entity: thing }))}
      ${button("Merge", () => setForm({ kind: "merge", entity: thing }))}${thing.mentions.length > 1 && button("Split", () => setForm({ kind: "split", entity: thing }))}</div>`;
    if (kind === "refused" && thing.predicate && model.text !== null) return html`<div class="row actions">
      ${button("Add it after all", () => setForm({ kind: "add", evidence: evidenceOf(thing), draft: thing }))}</div>`;
    return null;
  };
  const dialog = !model || isOff ? null : html`
    ${words && !form && html`<${SelectedWords} words=${words} onLeave=${() => setWords(null)} onAdd=${() => { setForm({ kind: "add", evidence: words }); setWords(null); }} />`}
    ${form && html`<${FORMS[form.kind]} ...${form} evidence=${form.evidence ?? form.relation?.evidence[0]} model=${model} decide=${decide} onClose=${() => setForm(null)} />`}`;
  const standing = decisions.filter((one) => one.state === "applied" && one.decision.wish.action !== "undo").length;
  const queue = ({ chooseRelation, shown }) => html`<${Queue} model=${model} relations=${shown.relations} selection=${readSelection(model, query)}
    chooseRelation=${chooseRelation} decideOn=${decideOn} undoLast=${undoLast} open=${setForm} />`;
  const tabs = !model || isOff ? [] : [
    { id: "review", label: "Review", count: queueOf(filtered(model, query).relations).length, view: queue },
    { id: "decisions", label: "Decisions", count: standing, view: () => html`<${Decisions} model=${model} decisions=${decisions} undo=${undo} />` },
  ];
  return { tabs, actionsFor, dialog, count: standing, start: () => refine({ tab: "review", version: "" }), onSelectText: isOff ? null : setWords };
}

const FORMS = { add: FactForm, correct: FactForm, retype: RetypeForm, merge: MergeForm, split: SplitForm };
const SHOWN_LETTERS = 80;

// Words of the text that somebody has selected, with what can be done with them.
function SelectedWords({ words, onAdd, onLeave }) {
  return html`<div class="selected-words" role="status"><span><bdi>“${shorten(words.text, SHOWN_LETTERS)}”</bdi></span>
    <button type="button" class="small primary" onClick=${onAdd}>Add a relation from these words</button>
    <button type="button" class="small quiet" onClick=${onLeave}>Cancel</button></div>`;
}
