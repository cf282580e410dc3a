// The start of the web app. Each import brings the pages of one file, which register themselves.
import { html, render } from "./html.js";
import { hasFiles } from "./components.js";
import { Shell } from "./shell.js";
import { readSession } from "./signin.js";
import "./studio_start.js";
import "./studio_run.js";
import "./compare.js";
import "./collections.js";
import "./collection_graph.js";
import "./collection_review.js";
import "./collection_questions.js";
import "./runs.js";
import "./keys.js";
import "./ontologies.js";
import "./health.js";

// A file let go beside the places for it would take the page away, with all that was typed.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => { if (hasFiles(event)) event.preventDefault(); });
render(html`<${Shell} />`, document.getElementById("app"));
readSession();
