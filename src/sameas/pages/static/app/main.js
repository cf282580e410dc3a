// The start of the web app. Each import brings the pages of one file, which register themselves.
import { html, render } from "./html.js";
import { Shell } from "./shell.js";
import { readSession } from "./signin.js";
import "./studio_start.js";
import "./studio_run.js";
import "./compare.js";
import "./collections.js";
import "./collection_graph.js";
import "./collection_entity.js";
import "./collection_review.js";
import "./collection_questions.js";
import "./runs.js";
import "./keys.js";
import "./ontologies.js";
import "./health.js";

render(html`<${Shell} />`, document.getElementById("app"));
readSession();
