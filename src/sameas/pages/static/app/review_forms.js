// The forms of a reviewer: a relation to be added or corrected, an entity to be given another class, merged or split.
import { html, useMemo, useState } from "./html.js";
import { Dialog, Failure, Field } from "./components.js";

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
    <div class="row"><button type="submit" class="primary" disabled=${busy || !isReady}>${submit}</button><button type="button" onClick=${onClose}>Leave it</button></div></form><//>`;
}

const ClassSelect = ({ model, value, onChange, label = "Class" }) => html`<${Field} label=${label}><select required value=${value} onChange=${(event) => onChange(event.target.value)}>
  <option value="">Choose one</option>${sorted(model, model.classes.keys()).map((iri) => html`<option value=${iri}>${model.label(iri)}</option>`)}</select><//>`;

// An end of a fact: a thing that is there, or a new one that the selected words name.
function EndField({ model, label, end, setEnd, evidence, near }) {
  const isNew = end.id === "new";
  const others = model.entities.filter((entity) => !near.includes(entity)).slice(0, 2000);
  return html`<${Field} label=${label}><select required value=${end.id} onChange=${(event) => setEnd({ ...end, id: event.target.value })}>
      <option value="">Choose an entity</option>
      ${near.length > 0 && html`<optgroup label="In these words">${near.map((entity) => html`<option value=${entity.id}>${entity.name} (${model.label(entity.types[0])})</option>`)}</optgroup>`}
      <option value="new">A new entity in these words…</option>
      <optgroup label="Elsewhere">${others.map((entity) => html`<option value=${entity.id}>${entity.name} (${model.label(entity.types[0])})</option>`)}</optgroup></select><//>
    ${isNew && html`<div class="pair"><${Field} label="Its name, as in the text"><input required value=${end.name ?? ""} onInput=${(event) => setEnd({ ...end, name: event.target.value })} /><//>
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

// `relation` is given where one is corrected; `draft` where a refused claim is added after all.
export function FactForm({ model, evidence, relation = null, draft = null, onClose, decide }) {
  const near = useMemo(
    () => model.entities.filter((entity) => entity.mentions.some((one) => one.start >= evidence.start && one.end <= evidence.end)),
    [model, evidence],
  );
  const find = (name) => model.entities.find((entity) => entity.name === name || entity.aliases.includes(name))?.id ?? "";
  const [subject, setSubject] = useState({ id: relation?.subject ?? (draft ? find(draft.subject) : near[0]?.id ?? "") });
  const [predicate, setPredicate] = useState(relation?.predicate ?? draft?.predicate ?? "");
  const [object, setObject] = useState({ id: relation?.object || (draft ? find(draft.object) : "") });
  const known = model.properties.get(predicate);
  const datatypes = (known?.range ?? []).filter((one) => one.startsWith(XSD));
  const [isValue, setIsValue] = useState(Boolean(relation?.value));
  const [value, setValue] = useState(relation?.value?.value ?? "");
  const [datatype, setDatatype] = useState(relation?.value?.datatype ?? "");
  const choose = (iri) => {
    setPredicate(iri);
    const property = model.properties.get(iri);
    setIsValue(property?.kind === "datatype");
    setDatatype((property?.range ?? []).find((one) => one.startsWith(XSD)) ?? `${XSD}string`);
  };
  const send = () => {
    const statement = {
      subject: endRef(model, subject, evidence),
      predicate,
      ...(isValue ? { value: { value: value.trim(), datatype: datatype || `${XSD}string` } } : { object: endRef(model, object, evidence) }),
      evidence: [{ start: evidence.start, end: evidence.end, text: evidence.text }],
    };
    return relation ? decide({ action: "correct", statement: model.statement(relation), becomes: statement }) : decide({ action: "add", statement });
  };
  return html`<${Form} title=${relation ? "Correct the relation" : "Add a relation"} submit=${relation ? "Correct it" : "Add it"} onClose=${onClose} onSubmit=${send}>
    <blockquote class="quote still"><bdi>${evidence.text}</bdi></blockquote>
    <${EndField} model=${model} label="Subject" end=${subject} setEnd=${setSubject} evidence=${evidence} near=${near} />
    <${Field} label="Property"><select required value=${predicate} onChange=${(event) => choose(event.target.value)}><option value="">Choose one</option>
      ${sorted(model, model.properties.keys()).map((iri) => html`<option value=${iri}>${model.label(iri)}</option>`)}</select><//>
    ${known?.kind !== "datatype" && known?.kind !== "object" && html`<label class="check"><input type="checkbox" checked=${isValue} onChange=${(event) => setIsValue(event.target.checked)} />The object is a value</label>`}
    ${isValue ? html`<div class="pair"><${Field} label="Value"><input required value=${value} onInput=${(event) => setValue(event.target.value)} /><//>
        <${Field} label="Datatype"><select value=${datatype} onChange=${(event) => setDatatype(event.target.value)}>${[...new Set([...datatypes, datatype || `${XSD}string`, ...["string", "integer", "decimal", "date", "gYear", "boolean"].map((one) => XSD + one)])].map((one) => html`<option value=${one}>${model.label(one)}</option>`)}</select><//></div>`
      : html`<${EndField} model=${model} label="Object" end=${object} setEnd=${setObject} evidence=${evidence} near=${near} />`}
  <//>`;
}

export function RetypeForm({ model, entity, onClose, decide }) {
  const [type, setType] = useState(entity.types[0] ?? "");
  return html`<${Form} title="Another class" submit="Change the class" onClose=${onClose} onSubmit=${() => decide({ action: "retype", entity: { id: entity.id, name: entity.name, types: entity.types }, types: [type] })}>
    <p><bdi>${entity.name}</bdi> is a</p><${ClassSelect} model=${model} value=${type} onChange=${setType} /><//>`;
}

export function MergeForm({ model, entity, onClose, decide }) {
  const [other, setOther] = useState("");
  const near = [...model.entities].filter((one) => one !== entity).sort((one, two) => likeness(entity, two) - likeness(entity, one)).slice(0, 500);
  return html`<${Form} title="Merge" submit="Merge them" onClose=${onClose} onSubmit=${() => decide({ action: "merge", entity: { id: entity.id, name: entity.name, types: entity.types }, into: { id: other, name: model.name(other), types: model.byId.get(other)?.types ?? [] } })}>
    <p><bdi>${entity.name}</bdi> is the same as</p>
    <${Field} label="The entity that stays"><select required value=${other} onChange=${(event) => setOther(event.target.value)}><option value="">Choose an entity</option>${near.map((one) => html`<option value=${one.id}>${one.name} (${model.label(one.types[0])})</option>`)}</select><//><//>`;
}

const likeness = (one, other) => {
  const words = new Set(one.name.toLocaleLowerCase().split(/\s+/));
  return other.name.toLocaleLowerCase().split(/\s+/).filter((word) => words.has(word)).length + (one.types[0] === other.types[0] ? 0.5 : 0);
};

export function SplitForm({ model, entity, onClose, decide }) {
  const [chosen, setChosen] = useState(new Set());
  const [name, setName] = useState(entity.name);
  const toggle = (index) => setChosen((now) => { const next = new Set(now); if (!next.delete(index)) next.add(index); return next; });
  const around = (mention) => [model.offsets.slice(Math.max(0, mention.start - 40), mention.start), model.offsets.slice(mention.end, mention.end + 40)];
  return html`<${Form} title="Split" submit="Split it" isReady=${chosen.size > 0 && chosen.size < entity.mentions.length} onClose=${onClose}
    onSubmit=${() => decide({ action: "split", entity: { id: entity.id, name: entity.name, types: entity.types }, mentions: entity.mentions.filter((_, index) => chosen.has(index)), name: name.trim() })}>
    <p>Which places name another entity?</p>
    <ul class="split">${entity.mentions.map((mention, index) => { const [before, after] = around(mention); return html`<li><label class="check"><input type="checkbox" checked=${chosen.has(index)} onChange=${() => toggle(index)} /><span class="small">…${before}<strong>${mention.text}</strong>${after}…</span></label></li>`; })}</ul>
    <${Field} label="Name of the other entity"><input required value=${name} onInput=${(event) => setName(event.target.value)} /><//><//>`;
}
