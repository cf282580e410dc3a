// Answers of SPARQL as plain data: rows of terms, or triples; and either of them as a graph.
const TERM = /^(?:<([^>]*)>|(_:\S+)|"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([\w-]+))?)\s*/;
const ESCAPES = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };
const plain = (text) => text.replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g, (_, short, long, letter) =>
  short || long ? String.fromCodePoint(parseInt(short || long, 16)) : ESCAPES[letter] ?? letter);

function readTerm(text) {
  const found = TERM.exec(text);
  if (!found) return null;
  const [whole, iri, blank, literal, datatype, language] = found;
  const rest = text.slice(whole.length);
  if (iri !== undefined) return [{ type: "uri", value: plain(iri) }, rest];
  if (blank !== undefined) return [{ type: "bnode", value: blank.slice(2) }, rest];
  return [{ type: "literal", value: plain(literal), datatype, "xml:lang": language }, rest];
}

// N-Triples as the service writes them, a triple a line.
export function readTriples(text) {
  const triples = [];
  for (const line of text.split("\n")) {
    const subject = readTerm(line.trim());
    const predicate = subject && readTerm(subject[1]);
    const object = predicate && readTerm(predicate[1]);
    if (object) triples.push([subject[0], predicate[0], object[0]]);
  }
  return triples;
}

const isThing = (term) => term && term.type !== "literal";

// Links between the things of a row: of three terms the middle is what connects; else each with the next.
function linksOf(row) {
  const terms = row.filter(Boolean);
  if (terms.length === 3 && isThing(terms[0]) && terms[1].type === "uri") return [[terms[0], terms[1].value, terms[2]]];
  const links = [];
  for (let at = 0; at + 1 < terms.length; at += 1) if (isThing(terms[at])) links.push([terms[at], "", terms[at + 1]]);
  return links;
}

// What a graph pane draws of rows of terms; `name` writes an IRI for people.
export function graphOf(rows, name) {
  const entities = new Map(), relations = [];
  const thing = (term) => {
    if (!entities.has(term.value)) entities.set(term.value, { id: term.value, name: name(term.value), types: [] });
    return term.value;
  };
  for (const row of rows) {
    for (const [from, predicate, to] of linksOf(row)) {
      const relation = { subject: thing(from), predicate, object: "", value: null };
      if (isThing(to)) relation.object = thing(to);
      else relation.value = { value: to.value, datatype: to.datatype ?? "" };
      relations.push(relation);
    }
    if (row.length === 1 && isThing(row[0])) thing(row[0]);
  }
  return { entities: [...entities.values()], relations, byId: entities };
}
