// Runs: the list with its filters, and how one run went.
import { html, useMemo } from "./html.js";
import { get, query } from "./api.js";
import { Chart, columns, stepOf, STEPS } from "./charts.js";
import { Badge, duration, Failure, Field, Key, Loading, localName, number, plural, Status, Table, Unavailable, useAsked, useTitle, when } from "./components.js";
import { dayOf, hoursOf, money, More, Span, Stat, Stats, useCounts, usePages } from "./console_parts.js";
import { isUnderWay } from "./graph_model.js";
import { addPage, href, refine } from "./router.js";

const STATUSES = ["pending", "running", "complete", "partial", "failed"];
const nameOf = (run) => run.document || `Text ${run.idempotencyKey.slice(7, 15)}`;
const tokens = (run) => (run.usage || []).reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);

function Filters({ now }) {
  const set = (name) => (event) => refine({ [name]: event.target.value });
  return html`<form class="console-filters card" role="search" aria-label="Filter runs" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="Document"><input type="search" value=${now.document || ""} onInput=${set("document")} placeholder="A part of its name" /><//>
    <${Field} label="Status"><select value=${now.status || ""} onChange=${set("status")}><option value="">Any</option>${STATUSES.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select><//>
    <${Field} label="Ontology"><input value=${now.ontology || ""} onChange=${set("ontology")} placeholder="Name or id" /><//>
    <${Field} label="From"><input type="date" value=${now.from || ""} onChange=${set("from")} /><//>
    <${Field} label="To"><input type="date" value=${now.to || ""} onChange=${set("to")} /><//>
  </form>`;
}

function Worked({ hours }) {
  const { data, error } = useCounts(hours);
  const drawn = useMemo(() => {
    if (!data) return null;
    const { times, sums } = columns(data, (row) => row.scope === "extraction");
    return { times, series: [
      { label: "computed", hue: 0, bars: true, values: sums.map((one) => one.calls - one.hits - one.shared) },
      { label: "replayed", hue: 2, bars: false, values: sums.map((one) => one.hits + one.shared) },
    ] };
  }, [data]);
  return html`<${Failure} error=${error} />${drawn && html`<${Chart} title="Extractions" about=${`Each point is ${STEPS[stepOf(hours)]}. Replays cost nothing.`} times=${drawn.times} series=${drawn.series} format=${number} />`}`;
}

function Runs({ query: now }) {
  const hours = hoursOf(now.hours);
  const filter = { status: now.status, ontologyId: now.ontology, document: now.document, from: dayOf(now.from), before: dayOf(now.to, { end: true }) };
  const pages = usePages(async (after) => {
    const page = await get(`/api/v1/runs${query({ ...filter, limit: 25, after })}`);
    return { rows: page.runs, next: page.next };
  }, [JSON.stringify(filter)]);
  const list = [
    { label: "Document", render: (run) => html`<a href=${href(`/runs/${run.idempotencyKey}/timeline`)}>${nameOf(run)}</a>` },
    { label: "Status", render: (run) => html`<span class="row tight"><${Status} status=${run.status} />${run.supersededAt && html`<${Badge} kind="warn" title="Its ontology has changed since">superseded<//>`}</span>` },
    { label: "Ontology", render: (run) => run.ontologyNames[0] || localName(run.ontologyId) },
    { label: "Entities", number: true, render: (run) => number(run.entityCount) },
    { label: "Relations", number: true, render: (run) => number(run.relationCount) },
    { label: "Tokens", number: true, render: (run) => number(tokens(run)) },
    { label: "Took", number: true, render: (run) => duration(run.durationMs) },
    { label: "Began", render: (run) => when(run.startedAt) },
    { label: "Key", render: (run) => html`<${Key} value=${run.idempotencyKey} length=${8} />` },
  ];
  return html`<div class="page stack">
    <div class="page-head"><div><h1>Runs</h1><p>Every extraction: what it found, what it cost, and how much did not have to be done again.</p></div><${Span} hours=${hours} /></div>
    <${Worked} hours=${hours} />
    <${Filters} now=${now} />
    ${pages.loading && !pages.rows.length ? html`<${Loading} />` : !pages.error && html`<${Table} caption="Runs" columns=${list} rows=${pages.rows} rowKey=${(run) => run.idempotencyKey}
      empty=${Object.values(filter).some(Boolean) ? "No run fits these filters." : "No run yet: paste a text in the Studio."} />`}
    <${More} pages=${pages} />
  </div>`;
}

// The stages as bars, each where and as long as it was.
function Stages({ stages, isOver }) {
  if (!stages.length) return html`<p class="muted">The journal of this run is not kept any more.</p>`;
  const began = Math.min(...stages.map((one) => one.startedAt));
  const whole = Math.max(1, ...stages.map((one) => one.startedAt + (one.durationMs ?? 0) - began));
  const bar = (one) => {
    const left = Math.min(99, ((one.startedAt - began) / whole) * 100);
    return { left: `${left}%`, width: `${Math.max(0.6, Math.min(100 - left, ((one.durationMs ?? 0) / whole) * 100))}%` };
  };
  return html`<div class="table-frame" role="region" aria-label="Stages" tabindex="0"><table class="stage-table">
    <caption class="hidden">Stages</caption>
    <thead><tr><th scope="col">Stage</th><th scope="col" class="number">Began after</th><th scope="col" class="number">Took</th><th scope="col" class="number">Items</th><th scope="col" class="number">From checkpoints</th><th scope="col" class="wide-cell">Time</th></tr></thead>
    <tbody>${stages.map((one) => html`<tr key=${`${one.attempt}-${one.stage}`}>
      <th scope="row">${one.stage.replaceAll("_", " ")}${one.attempt > 1 && html` <${Badge}>attempt ${one.attempt}<//>`}${one.partial && html` <${Badge} kind="warn">in part<//>`}</th>
      <td class="number">${duration(one.startedAt - began)}</td>
      <td class="number">${one.durationMs === null ? html`<${Badge} kind=${isOver ? "warn" : "info"}>${isOver ? "not finished" : "under way"}<//>` : duration(one.durationMs)}</td>
      <td class="number">${number(one.items)}</td>
      <td class="number">${one.chunks ? `${number(one.chunksFromCheckpoints)} of ${number(one.chunks)}` : "–"}</td>
      <td class="wide-cell"><span class="track" aria-hidden="true"><span class="stage-bar" style=${bar(one)}></span></span></td>
    </tr>`)}</tbody></table></div>`;
}

const KIND = { extraction_failed: "bad", error_recoverable: "warn", timeout_warning: "warn", budget_warning: "warn", rate_limited: "warn", extraction_cancelled: "warn", extraction_completed: "good", cache_hit: "good" };

function Events({ events, leftOut }) {
  const began = events.length ? events[0].timestamp : 0;
  return html`<ol class="events">${events.map((one) => html`<li key=${one.number}>
      <span class="at">${duration(one.timestamp - began)}</span><${Badge} kind=${KIND[one.type] || "plain"}>${one.type.replaceAll("_", " ")}<//><span>${one.said}</span></li>`)}</ol>
    ${leftOut > 0 && html`<p class="muted">${plural(leftOut, "further event")} left out.</p>`}`;
}

const USAGE = [
  { label: "Stage", render: (row) => row.stage.replaceAll("_", " ") },
  { label: "Model", key: "model" },
  { label: "Calls", number: true, render: (row) => number(row.calls) },
  { label: "Tokens in", number: true, render: (row) => number(row.inputTokens) },
  { label: "Tokens out", number: true, render: (row) => number(row.outputTokens) },
  { label: "Cost", number: true, render: (row) => money(row.cost) },
  { label: "Waited", number: true, render: (row) => duration(row.waitedMs) },
  { label: "Calls saved", number: true, render: (row) => number(row.memoHits) },
  { label: "Saved", number: true, render: (row) => money(row.savedCost) },
];

function TimelinePage({ params }) {
  const path = `/api/v1/runs/${encodeURIComponent(params.key)}`;
  const { data, error, loading, reload } = useAsked(() => Promise.all([get(path), get(`${path}/timeline`)]), [params.key]);
  useTitle(data && `Timeline of ${nameOf(data[0])}`);
  if (error) return html`<${Unavailable} title="This run cannot be shown" error=${error}><a href="#/runs">All runs</a><//>`;
  if (!data) return html`<div class="page"><${Loading} /></div>`;
  const [run, told] = data;
  const { saved, total } = told;
  return html`<div class="page stack">
    <p class="crumbs"><a href="#/runs">Runs</a> / ${run.idempotencyKey.slice(7, 15)}</p>
    <div class="page-head"><div><h1>${nameOf(run)}</h1><p><${Status} status=${run.status} /> ${plural(run.entityCount, "entity", "entities")} and ${plural(run.relationCount, "relation")} by ${run.extractor.name}, ${when(run.startedAt)}</p></div>
      <div class="row"><button type="button" onClick=${reload} disabled=${loading}>Refresh</button><a class="button primary" href=${href(`/studio/${run.idempotencyKey}`)}>Open the graph</a></div></div>
    <${Stats} label="What it took">
      <${Stat} label="Took" value=${duration(run.durationMs) || "–"} hint=${plural(run.attempt, "attempt")} />
      <${Stat} label="Tokens" value=${number(total.inputTokens + total.outputTokens)} hint=${plural(total.calls, "call")} />
      <${Stat} label="Cost" value=${money(total.cost)} />
      <${Stat} label="From checkpoints" value=${number(saved.chunksFromCheckpoints)} hint=${`pieces of work on ${plural(saved.chunks, "chunk")}`} kind=${saved.chunksFromCheckpoints ? "good" : ""} />
      <${Stat} label="Calls saved" value=${number(saved.modelCalls)} hint=${`${number(saved.tokens)} tokens, ${money(saved.cost)}`} kind=${saved.modelCalls ? "good" : ""} />
    <//>
    ${run.errors.length > 0 && run.errors.map((one, index) => html`<div class="notice notice-bad" key=${index}>${one.message}</div>`)}
    <section class="stack"><h2>Stages</h2><${Stages} stages=${told.stages} isOver=${!isUnderWay(run)} /></section>
    <section class="stack"><h2>Tokens and cost by stage</h2><${Table} caption="Tokens and cost by stage" columns=${USAGE} rows=${told.usage} empty="No model was asked: this run cost nothing." /></section>
    <section class="stack card"><h2>Events</h2><${Events} events=${told.events} leftOut=${told.leftOut} /></section>
  </div>`;
}

addPage({ path: "/runs", title: "Runs", view: Runs, nav: "Runs", order: 40 });
addPage({ path: "/runs/:key/timeline", title: "Run", view: TimelinePage, section: "Runs" });
