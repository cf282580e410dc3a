// The merged graph of a collection, a part at a time from the service.
import { html, useMemo } from "./html.js";
import { get, query } from "./api.js";
import { base, Head, place, useCollection } from "./collection_parts.js";
import { GraphExplorer, NEIGHBOURS } from "./graph_explorer.js";
import { addPage } from "./pages.js";
import { href } from "./router.js";

const FIRST = 3;

function sourceOf(id) {
  const around = (ids) => get(`${base(id)}/graph${query({ around: ids?.join(" "), limit: NEIGHBOURS })}`);
  // Where to begin: what has such a name, or the most connected.
  const begin = async (words) => {
    if (!words) return around();
    const { entities } = await get(`${base(id)}/entities${query({ q: words, limit: FIRST })}`);
    return entities.length ? around(entities.slice(0, FIRST).map((one) => one.id)) : { opened: [], entities: [], statements: [], leftOut: 0 };
  };
  return { around, begin, pageOf: (entity) => href(place(id, "entities", entity)) };
}

function GraphPage({ params, query: now }) {
  const { id } = params;
  const loaded = useCollection(id);
  const source = useMemo(() => sourceOf(id), [id]);
  return html`<div class="page graph-page stack"><${Head} id=${id} loaded=${loaded} current="graph" />
    ${loaded.collection && html`<${GraphExplorer} source=${source} terms=${loaded.terms} total=${loaded.collection.entities} query=${now} />`}
  </div>`;
}

addPage({ path: "/collections/:id/graph", title: "Graph", view: GraphPage, section: "Collections" });
