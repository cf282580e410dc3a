// Health: every dependency, limiters and circuits, what goes on now and over time, and the settings in force.
import { html, useEffect, useMemo } from "./html.js";
import { get } from "./api.js";
import { Chart, columns, stepOf, STEPS } from "./charts.js";
import { Badge, Failure, Loading, Notice, number, Table, useAsked } from "./components.js";
import { hoursOf, Span, Stat, Stats, useCounts } from "./console_parts.js";
import { addPage } from "./router.js";

const EVERY = 10_000;
const CIRCUIT = { closed: "good", half_open: "warn", open: "bad" };
const CIRCUITS = { closed: "closed: calls go through", half_open: "half open: one call is tried", open: "open: calls are refused for a while" };
const GAUGES = { runs_under_way: "Runs under way", event_subscribers: "Listeners to events", streams_open: "Open streams", answers_in_memory: "Answers in memory", bytes_of_bodies: "Bytes of requests" };
const DEPENDENCIES = { store: "the store of records", home: "the folder of runs", database: "the database of results" };

const MODELS = [
  { label: "Account", key: "account" },
  { label: "Circuit", render: (one) => html`<${Badge} kind=${CIRCUIT[one.circuit] || "warn"}>${CIRCUITS[one.circuit] || one.circuit}<//>` },
  { label: "Under way", number: true, render: (one) => `${number(one.underWay)} of ${number(one.maxConcurrent)}` },
  { label: "Waiting", number: true, render: (one) => number(one.waiting) },
  { label: "Requests a minute", number: true, render: (one) => number(one.requestsPerMinute) },
  { label: "Tokens a minute", number: true, render: (one) => number(one.tokensPerMinute) },
];
const SETTINGS = [
  { label: "Setting", render: (one) => html`<code>${one.name}</code>` },
  { label: "Value", render: (one) => html`<span class="mono">${one.value}</span>` },
  { label: "From", render: (one) => html`<${Badge} kind=${one.source === "default" ? "plain" : "info"}>${one.source}<//>` },
];

function Calls({ hours }) {
  const { data, error } = useCounts(hours);
  const drawn = useMemo(() => {
    if (!data) return null;
    const { times, sums } = columns(data);
    return { times, series: [
      { label: "calls", hue: 0, bars: true, values: sums.map((one) => one.calls) },
      { label: "errors", hue: 8, bars: false, values: sums.map((one) => one.errors) },
    ] };
  }, [data]);
  return html`<${Failure} error=${error} />${drawn && html`<${Chart} title="Calls and errors" about=${`Each point is ${STEPS[stepOf(hours)]}.`} times=${drawn.times} series=${drawn.series} format=${number} />`}`;
}

function Health({ query: now }) {
  const hours = hoursOf(now.hours);
  const { data, error, reload } = useAsked(() => get("/api/v1/system"), []);
  useEffect(() => {
    const timer = setInterval(reload, EVERY);
    return () => clearInterval(timer);
  }, []);
  return html`<div class="page stack">
    <div class="page-head"><div><h1>Health</h1><p>Checked every ten seconds.</p></div><${Span} hours=${hours} /></div>
    <${Failure} error=${error} />${!data && !error && html`<${Loading} />`}
    ${data && html`
      ${data.status === "failing" && html`<${Notice} kind="bad" title="Something does not answer">New work is refused until it is back; what is kept is safe.<//>`}
      <section class="stack"><h2>Dependencies</h2><ul class="cards plain">${data.dependencies.map((one) => html`<li class="card dependency" key=${one.name}>
        <div class="row spread"><strong>${one.name}</strong><${Badge} kind=${one.said === "ok" ? "good" : "bad"}>${one.said}<//></div>
        <p class="muted small">${DEPENDENCIES[one.name] || ""}, answered in ${one.milliseconds.toFixed(1)} ms</p></li>`)}</ul></section>
      <${Stats} label="Now">${Object.entries(GAUGES).map(([name, label]) => html`<${Stat} key=${name} label=${label} value=${number(data.gauges[name] ?? 0)} />`)}<${Stat} label="Version" value=${data.version} /><//>
      <${Calls} hours=${hours} />
      <section class="stack"><h2>Models: limiter and circuit</h2><${Table} caption="Models" columns=${MODELS} rows=${data.models} rowKey=${(one) => one.account} empty="No model was asked since the start." /></section>
      ${data.settings && html`<section class="stack"><h2>Settings in force</h2><${Table} caption="Settings" columns=${SETTINGS} rows=${data.settings} rowKey=${(one) => one.name} /></section>`}`}
  </div>`;
}

addPage({ path: "/health", title: "Health", view: Health, nav: "Health", order: 70 });
