// The viewer of a file without a server: the run stands in the page itself.
import { html, render, useState } from "./html.js";
import { Toasts, plural } from "./components.js";
import { GraphModel } from "./graph_model.js";
import { route } from "./router.js";
import { useStore } from "./store.js";
import { Workspace } from "./workspace.js";

const view = JSON.parse(document.getElementById("sameas-data").textContent);

function FilePage() {
  const { query } = useStore(route);
  const [model] = useState(() => new GraphModel(view));
  return html`<main class="run-page" id="main">
    <header class="run-head"><div class="run-title"><h1><bdi>${view.run.document || "Graph of a text"}</bdi></h1>
      <p class="muted">${plural(model.entities.length, "entity", "entities")}, ${plural(model.relations.length, "relation")}; ${view.run.extractor.name}; ${model.ontology?.title || view.run.ontologyId}</p></div></header>
    <${Workspace} model=${model} query=${query} />
  </main><${Toasts} />`;
}

render(html`<${FilePage} />`, document.getElementById("app"));
