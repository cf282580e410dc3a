// A run as the panes show it: things, statements and places by what they are looked up with. Made anew from each view
// that the service gives, and never changed.
import { localName } from "./components.js";
import { Offsets } from "./offsets.js";

export const isUnderWay = (run) => ["pending", "running"].includes(run.status);

const HUES = 12;
const XSD = "http://www.w3.org/2001/XMLSchema#";

function append(lists, key, item) {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

export class GraphModel {
  constructor(view) {
    this.view = view;
    this.run = view.run;
    this.text = view.text;
    this.offsets = new Offsets(view.text ?? "");
    this.ontology = view.ontology;
    this.classes = new Map((view.ontology?.classes ?? []).map((one) => [one.iri, one]));
    this.properties = new Map((view.ontology?.properties ?? []).map((one) => [one.iri, one]));
    this.above = new Map();
    this.entities = view.entities.map((entity) => ({ aliases: [], mentions: [], confidence: 1, confidenceFrom: "rule", ...entity }));
    this.byId = new Map(this.entities.map((entity) => [entity.id, entity]));
    this.relations = view.relations.map((relation, number) => ({
      object: "", value: null, evidence: [], subjectSpans: [], objectSpans: [], status: "grounded", confidence: 1, confidenceFrom: "rule",
      ...relation, number, decided: view.decided?.[number] ?? null,
    }));
    this.refused = view.rejected.map((one, number) => ({ subject: "", predicate: "", object: "", detail: "", count: 1, ...one, number }));
    this.relationsOf = new Map();
    for (const relation of this.relations) {
      for (const end of [relation.subject, relation.object]) {
        if (end) append(this.relationsOf, end, relation);
      }
    }
    this.#count();
    this.#colour();
    this.mentions = this.entities
      .flatMap((entity) => entity.mentions.map((mention) => ({ start: mention.start, end: mention.end, entity })))
      .sort((one, other) => one.start - other.start || other.end - one.end);
  }

  // How many things each class has, itself and with all that are below it.
  #count() {
    this.own = new Map();
    this.inAll = new Map();
    this.children = new Map();
    for (const one of this.classes.values()) {
      for (const parent of one.parents ?? []) append(this.children, parent, one.iri);
    }
    for (const entity of this.entities) {
      const above = new Set();
      for (const type of entity.types) {
        this.own.set(type, (this.own.get(type) ?? 0) + 1);
        for (const iri of this.ancestors(type)) above.add(iri);
      }
      for (const iri of above) this.inAll.set(iri, (this.inAll.get(iri) ?? 0) + 1);
    }
    this.uses = new Map();
    for (const relation of this.relations) this.uses.set(relation.predicate, (this.uses.get(relation.predicate) ?? 0) + 1);
  }

  #colour() {
    const used = [...this.own.keys()].sort((one, other) => this.own.get(other) - this.own.get(one) || (one < other ? -1 : 1));
    this.hues = new Map(used.map((iri, index) => [iri, index % HUES]));
  }

  // Whether more may be found yet.
  get isUnderWay() {
    return isUnderWay(this.run);
  }

  // A class and everything above it.
  ancestors(iri) {
    const known = this.above.get(iri);
    if (known) return known;
    const found = new Set(), left = [iri];
    while (left.length) {
      const one = left.pop();
      if (found.has(one)) continue;
      found.add(one);
      left.push(...(this.classes.get(one)?.parents ?? []));
    }
    this.above.set(iri, found);
    return found;
  }

  // The thing of an id; also of the one that it had while the run was under way, which is made of a name and a class.
  find(id) {
    const known = this.byId.get(id);
    if (known) return known;
    const isCalled = (text, type) => `${text.toLocaleLowerCase()} ${type}` === id;
    return this.entities.find((entity) => entity.types.some((type) => [entity.name, ...entity.mentions.map((one) => one.text)].some((text) => isCalled(text, type)))) ?? null;
  }

  isA(entity, iri) {
    return entity.types.some((type) => this.ancestors(type).has(iri));
  }

  hue(entity) {
    return this.hues.get(entity.types[0]) ?? HUES - 1;
  }

  label(iri) {
    if (iri.startsWith(XSD)) return iri.slice(XSD.length);
    return this.classes.get(iri)?.label ?? this.properties.get(iri)?.label ?? localName(iri);
  }

  name(id) {
    return this.byId.get(id)?.name ?? id;
  }

  objectName(relation) {
    return relation.value ? [relation.value.value, relation.value.unit].filter(Boolean).join(" ") : this.name(relation.object);
  }

  sentence(relation) {
    return `${this.name(relation.subject)} ${this.label(relation.predicate)} ${this.objectName(relation)}`;
  }

  // The statement of a relation as the service wants it named: by names and words, not by its place in this run.
  statement(relation) {
    const ref = (id) => ({ id, name: this.name(id), types: this.byId.get(id)?.types ?? [] });
    return {
      subject: ref(relation.subject),
      predicate: relation.predicate,
      ...(relation.value ? { value: relation.value } : { object: ref(relation.object) }),
      evidence: relation.evidence,
    };
  }
}

// What of a run is shown: { entities, relations, refused }, by the filters of the address.
export function filtered(model, { q = "", class: klass = "", property = "", min = "", status = "" }) {
  const words = q.trim().toLocaleLowerCase();
  const least = min === "" ? model.view.leastConfidence ?? 0 : Number(min);
  const has = (...texts) => !words || texts.some((text) => text && text.toLocaleLowerCase().includes(words));
  const named = (entity) => has(entity.name, ...entity.aliases, ...entity.types.map((type) => model.label(type)));
  const relations = model.relations.filter((relation) => {
    if (relation.confidence < least) return false;
    if (property && relation.predicate !== property) return false;
    if (status === "decided" ? !relation.decided : status === "undecided" ? relation.decided : status && relation.status !== status) return false;
    const subject = model.byId.get(relation.subject), object = model.byId.get(relation.object);
    if (klass && !(subject && model.isA(subject, klass)) && !(object && model.isA(object, klass))) return false;
    return !words || has(model.label(relation.predicate), relation.value?.value) || (subject && named(subject)) || (object && named(object));
  });
  const ends = new Set(relations.flatMap((relation) => [relation.subject, relation.object]));
  const byRelation = Boolean(property || status);
  const entities = model.entities.filter((entity) => {
    if (klass && !model.isA(entity, klass)) return !byRelation ? false : ends.has(entity.id);
    if (byRelation) return ends.has(entity.id);
    return ends.has(entity.id) || (entity.confidence >= least && named(entity));
  });
  const refused = model.refused.filter((one) =>
    (!property || one.predicate === property) && has(one.subject, one.object, one.code, one.predicate && model.label(one.predicate)));
  return { entities, relations, refused, least };
}
