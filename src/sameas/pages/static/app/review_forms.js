// The forms of a reviewer: a relation to be added or corrected, an entity to be given another class, merged or split.
import { html, useMemo, useState } from "./html.js";
import { Dialog, Failure, Field, toggled } from "./components.js";
import { select } from "./workspace.js";

const XSD = "http://www.w3.org/2001/XMLSchema#";
const sorted = (model, iris) => [...iris].sort((one, other) => model.label(one).localeCompare(model.label(other)));

function Form({ title, submit, onClose, onSubmit, children, isReady = true }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
      onClose();
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}><form class="stack" onSubmit=${send}>${children}<${Failure} error=${error} />
    <div class="row end"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${busy || !isReady}>${submit}</button></div></form><//>`;
}

const ClassSelect = ({ model, value, onChange, label = "Class" }) => html`<${Field} label=${label}><select required value=${value} onChange=${(event) => onChange(event.target.value)}>
  <option value="">Choose one</option>${sorted(model, model.classes.keys()).map((iri) => html`<option value=${iri}>${model.label(iri)}</option>`)}</select><//>`;

const MOST = 2000;

const EntityOptions = ({ model, entities }) => entities.map((entity) =>
  html`<option key=${entity.id} value=${entity.id}>${entity.name} (${model.label(entity.types[0])})</option>`);

// An end of a fact: a thing that is there, or a new one that the selected words name.
function EndField({ model, label, end, setEnd, near }) {
  const others = model.entities.filter((entity) => !near.includes(entity)).slice(0, MOST);
  return html`<${Field} label=${label}><select required value=${end.id} onChange=${(event) => setEnd({ ...end, id: event.target.value })}>
      <option value="">Choose an entity</option>
      ${near.length > 0 && html`<optgroup label="In these words"><${EntityOptions} model=${model} entities=${near} /></optgroup>`}
      <option value="new">A new entity in these words…</option>
      <optgroup label="Elsewhere"><${EntityOptions} model=${model} entities=${others} /></optgroup></select><//>
    ${end.id === "new" && html`<div class="pair"><${Field} label="Its name, as in the text">
        <input required value=${end.name ?? ""} onInput=${(event) => setEnd({ ...end, name: event.target.value })} /><//>
      <${ClassSelect} model=${model} value=${end.type ?? ""} onChange=${(type) => setEnd({ ...end, type })} /></div>`}`;
}

function endRef(model, end, evidence) {
  if (end.id !== "new") return { id: end.id, name: model.name(end.id), types: model.byId.get(end.id)?.types ?? [] };
  const name = (end.name ?? "").trim();
  const at = evidence.text.indexOf(name);
  if (!name || at < 0) throw new Error(`The selected words do not hold “${name}”.`);
  const start = evidence.start + [...evidence.text.slice(0, at)].length;
  return { name, types: [end.type], mention: { start, end: start + [...name].length, text: name } };
}

const USUAL = ["string", "integer", "decimal", "date", "gYear", "boolean"].map((one) => XSD + one);

// A literal as it is typed in: { value, datatype, unit }.
function ValueFields({ model, literal, setLiteral, datatypes }) {
  const set = (name) => (event) => setLiteral({ ...literal, [name]: event.target.value });
  const choices = [...new Set([...datatypes, literal.datatype, ...USUAL])];
  return html`<div class="pair"><${Field} label="Value"><input required value=${literal.value} onInput=${set("value")} /><//>
    <${Field} label="Unit"><input value=${literal.unit} onInput=${set("unit")} /><//>
    <${Field} label="Datatype"><select value=${literal.datatype} onChange=${set("datatype")}>
      ${choices.map((one) => html`<option key=${one} value=${one}>${model.label(one)}</option>`)}</select><//></div>`;
}

// `relation` is given where one is corrected; `draft` where a refused claim is added after all.
export function FactForm({ model, evidence, relation = null, draft = null, onClose, decide }) {
  const near = useMemo(
    () => model.entities.filter((entity) => entity.mentions.some((one) => one.start >= evidence.start && one.end <= evidence.end)),
    [model, evidence],
  );
  const find = (name) => model.entities.find((entity) => entity.name === name || entity.aliases.includes(name))?.id ?? "";
  const kindOf = (iri) => model.properties.get(iri)?.kind;
  const datatypesOf = (iri) => (model.properties.get(iri)?.range ?? []).filter((one) => one.startsWith(XSD));
  const firstType = (iri) => datatypesOf(iri)[0] ?? `${XSD}string`;
  const [predicate, setPredicate] = useState(relation?.predicate ?? draft?.predicate ?? "");
  const [subject, setSubject] = useState({ id: relation?.subject ?? (draft ? find(draft.subject) : near[0]?.id ?? "") });
  const [object, setObject] = useState({ id: relation?.object || (draft ? find(draft.object) : "") });
  const [isValue, setIsValue] = useState(relation ? Boolean(relation.value) : kindOf(predicate) === "datatype");
  const [literal, setLiteral] = useState({ value: draft?.object ?? "", datatype: firstType(predicate), unit: "", ...relation?.value });
  const choose = (iri) => {
    setPredicate(iri);
    setIsValue(kindOf(iri) === "datatype");
    setLiteral({ ...literal, datatype: firstType(iri) });
  };
  const send = () => {
    const { value, datatype, unit } = literal;
    const statement = {
      subject: endRef(model, subject, evidence),
      predicate,
      ...(isValue ? { value: { value: value.trim(), datatype, ...(unit ? { unit: unit.trim() } : {}) } } : { object: endRef(model, object, evidence) }),
      evidence: relation?.evidence ?? [{ start: evidence.start, end: evidence.end, text: evidence.text }],
    };
    return relation ? decide({ action: "correct", statement: model.statement(relation), becomes: statement }) : decide({ action: "add", statement });
  };
  return html`<${Form} title=${relation ? "Correct the relation" : "Add a relation"} submit=${relation ? "Correct it" : "Add it"} onClose=${onClose} onSubmit=${send}>
    <blockquote class="quote still"><bdi>${evidence.text}</bdi></blockquote>
    <${EndField} model=${model} label="Subject" end=${subject} setEnd=${setSubject} near=${near} />
    <${Field} label="Property"><select required value=${predicate} onChange=${(event) => choose(event.target.value)}><option value="">Choose one</option>
      ${sorted(model, model.properties.keys()).map((iri) => html`<option key=${iri} value=${iri}>${model.label(iri)}</option>`)}</select><//>
    ${!["datatype", "object"].includes(kindOf(predicate)) && html`<label class="check">
      <input type="checkbox" checked=${isValue} onChange=${(event) => setIsValue(event.target.checked)} />The object is a value</label>`}
    ${isValue ? html`<${ValueFields} model=${model} literal=${literal} setLiteral=${setLiteral} datatypes=${datatypesOf(predicate)} />`
      : html`<${EndField} model=${model} label="Object" end=${object} setEnd=${setObject} near=${near} />`}
  <//>`;
}

const refOf = ({ id, name, types }) => ({ id, name, types });

export function RetypeForm({ model, entity, onClose, decide }) {
  const [type, setType] = useState(entity.types[0] ?? "");
  const send = () => decide({ action: "retype", entity: refOf(entity), types: [type] });
  return html`<${Form} title="Change the class" submit="Change the class" onClose=${onClose} onSubmit=${send}>
    <p><bdi>${entity.name}</bdi> is a</p><${ClassSelect} model=${model} value=${type} onChange=${setType} /><//>`;
}

// How many words two names share; of the same class, a little more.
const likeness = (one, other) => {
  const words = new Set(one.name.toLocaleLowerCase().split(/\s+/));
  return other.name.toLocaleLowerCase().split(/\s+/).filter((word) => words.has(word)).length + (one.types[0] === other.types[0] ? 0.5 : 0);
};

export function MergeForm({ model, entity, onClose, decide }) {
  const [other, setOther] = useState("");
  const likest = useMemo(
    () => model.entities.filter((one) => one !== entity).map((one) => [likeness(entity, one), one]).sort(([one], [other]) => other - one).slice(0, MOST).map(([, one]) => one),
    [model, entity],
  );
  // What is left to look at is the one that stays.
  const send = () => decide({ action: "merge", entity: refOf(entity), into: refOf(model.byId.get(other)) }, () => select("entity", other));
  return html`<${Form} title="Merge" submit="Merge them" onClose=${onClose} onSubmit=${send}>
    <p><bdi>${entity.name}</bdi> is the same as</p>
    <${Field} label="The entity that stays"><select required value=${other} onChange=${(event) => setOther(event.target.value)}>
      <option value="">Choose an entity</option><${EntityOptions} model=${model} entities=${likest} /></select><//><//>`;
}

const AROUND = 40;

export function SplitForm({ model, entity, onClose, decide }) {
  const [chosen, setChosen] = useState(new Set());
  const [name, setName] = useState(entity.name);
  const { offsets } = model;
  const send = () => decide({
    action: "split", entity: refOf(entity), mentions: entity.mentions.filter((_, index) => chosen.has(index)), name: name.trim(),
  });
  return html`<${Form} title="Split" submit="Split it" isReady=${chosen.size > 0 && chosen.size < entity.mentions.length} onClose=${onClose} onSubmit=${send}>
    <p>Which places name another entity?</p>
    <ul class="split">${entity.mentions.map(({ start, end, text }, index) => html`<li key=${index}><label class="check">
      <input type="checkbox" checked=${chosen.has(index)} onChange=${() => setChosen(toggled(chosen, index))} />
      <span class="small">…${offsets.slice(Math.max(0, start - AROUND), start)}<strong>${text}</strong>${offsets.slice(end, end + AROUND)}…</span></label></li>`)}</ul>
    <${Field} label="Name of the other entity"><input required value=${name} onInput=${(event) => setName(event.target.value)} /><//><//>`;
}
