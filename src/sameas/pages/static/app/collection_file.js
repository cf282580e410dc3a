// The viewer of a collection in a file without a server: all of it stands in the page itself, and a part is drawn.
import { html, render, useState } from "./html.js";
import { Table, Toasts, number, plural, when } from "./components.js";
import { GraphExplorer, NEIGHBOURS } from "./graph_explorer.js";
import { route } from "./router.js";
import { Terms } from "./statements.js";
import { useStore } from "./store.js";

const FIRST = 3, BEGINNING = 4;
const { collection, outline, documents, entities, statements } = JSON.parse(document.getElementById("sameas-data").textContent);

function sourceOf() {
  const byId = new Map(entities.map((one) => [one.id, one]));
  const relations = new Map(entities.map((one) => [one.id, []]));
  for (const one of statements) for (const end of new Set([one.subject, one.object])) relations.get(end)?.push(one);
  // As the service does it: of each entity the relations that most documents tell, up to a limit.
  const around = async (ids) => {
    const found = ids.filter((id) => byId.has(id)).map((id) => [...relations.get(id)].sort((one, other) => other.documents - one.documents || Boolean(other.object) - Boolean(one.object)));
    const kept = found.flatMap((list) => list.slice(0, NEIGHBOURS));
    const ends = new Set([...ids, ...kept.flatMap((one) => [one.subject, one.object])]);
    return { opened: ids, entities: [...ends].filter((id) => byId.has(id)).map((id) => byId.get(id)), statements: kept, leftOut: found.reduce((sum, list) => sum + Math.max(0, list.length - NEIGHBOURS), 0) };
  };
  const named = (words) => {
    const wanted = words.toLocaleLowerCase();
    const rank = (one) => [one.name, ...one.aliases].map((name) => name.toLocaleLowerCase().indexOf(wanted)).filter((at) => at >= 0).sort((one, other) => one - other)[0] ?? -1;
    return entities.map((one) => [rank(one), one]).filter(([at]) => at >= 0).sort(([one], [other]) => one - other).slice(0, FIRST).map(([, one]) => one.id);
  };
  const most = () => [...entities].sort((one, other) => relations.get(other.id).length - relations.get(one.id).length).slice(0, BEGINNING).map((one) => one.id);
  return { around, begin: (words) => around(words ? named(words) : most()), relationsOf: (id) => relations.get(id) ?? [] };
}

const COLUMNS = [
  { label: "Document", render: (one) => one.names.map((name) => html`<div key=${name.name}><bdi>${name.title || name.name}</bdi></div>`) },
  { label: "Entities", number: true, render: (one) => number(one.entities) },
  { label: "Relations", number: true, render: (one) => number(one.claims) },
  { label: "Added", render: (one) => when(one.addedAt) },
];

function FilePage() {
  const { query } = useStore(route);
  const [source] = useState(sourceOf);
  const [terms] = useState(() => new Terms(outline));
  return html`<main id="main" class="page graph-page stack">
    <div class="page-head"><div><h1><bdi>${collection.name}</bdi></h1>
      <p>${plural(documents.length, "document")}, ${plural(entities.length, "entity", "entities")}, ${plural(statements.length, "relation")}; ${outline.title || collection.ontologyId}</p></div></div>
    <${GraphExplorer} source=${source} terms=${terms} total=${entities.length} query=${query} />
    <section class="stack"><h2>Documents</h2><${Table} caption="Documents" columns=${COLUMNS} rows=${documents} rowKey=${(one) => one.digest || one.names[0]?.name} empty="No document was read yet." /></section>
  </main><${Toasts} />`;
}

render(html`<${FilePage} />`, document.getElementById("app"));
