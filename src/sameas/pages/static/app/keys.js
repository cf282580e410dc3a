// Keys: what idempotency does over time, the records behind it, and one record in words.
import { html, useMemo, useState } from "./html.js";
import { get, post, query } from "./api.js";
import { Chart, columns, percent, stepOf, STEPS } from "./charts.js";
import { Badge, Dialog, duration, Failure, Field, Key, Loading, Notice, number, Table, toast, useAsked, useTitle, when } from "./components.js";
import { dayOf, hoursOf, mayChange, More, Span, Stat, Stats, useCounts, usePages } from "./console_parts.js";
import { addPage, go, href, refine } from "./router.js";

const STATES = { held: "info", done: "good", failed: "bad" };
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const ADVICE = { "many-replays": "Clients retry too hard", "no-replays": "The key may be wrong" };

function Charts({ data, hours }) {
  const drawn = useMemo(() => {
    const { times, sums } = columns(data);
    const own = columns(data, (row) => row.scope !== "extraction").sums;
    const removed = columns({ ...data, counts: data.pruned ?? [] }).sums;
    const share = (part, whole) => (whole ? part / whole : null);
    return {
      times,
      rates: [
        { label: "replay rate", hue: 6, values: own.map((one) => share(one.hits + one.shared, one.calls)) },
        { label: "hit rate, all", hue: 2, values: sums.map((one) => share(one.hits, one.calls)) },
      ],
      waiting: [{ label: "waited, on average", hue: 5, values: sums.map((one) => share(one.waitedMs, one.waits)) }],
      removals: [
        { label: "forgotten", hue: 8, bars: true, values: sums.map((one) => one.forgotten) },
        ...(data.pruned ? [{ label: "pruned, all tenants", hue: 11, bars: false, values: removed.map((one) => one.pruned) }] : []),
      ],
    };
  }, [data]);
  return html`<div class="charts">
    <${Chart} title="Replays and hits" times=${drawn.times} series=${drawn.rates} format=${percent} limit=${{ label: "5 %", value: 0.05 }}
      about=${`Replays of clients’ own keys, hits of every kind; each point is ${STEPS[stepOf(hours)]}. Above the line, clients retry too hard.`} />
    <${Chart} title="Waiting" about="Time that a call waited for the same work of another." times=${drawn.times} series=${drawn.waiting} format=${duration} />
    <${Chart} title="Removed" about=${data.pruned ? "Forgotten by choice, and pruned because they had expired." : "Forgotten by choice."} times=${drawn.times} series=${drawn.removals} format=${number} />
  </div>`;
}

function Totals({ data }) {
  const sum = (name, of = () => true) => data.counts.filter(of).reduce((all, row) => all + row[name], 0);
  const own = (row) => row.scope !== "extraction";
  const calls = sum("calls"), ownCalls = sum("calls", own), replays = sum("hits", own) + sum("shared", own);
  return html`<${Stats} label="In this time">
    <${Stat} label="Calls" value=${number(calls)} />
    <${Stat} label="Replay rate" value=${ownCalls ? percent(replays / ownCalls) : "–"} hint="clients’ own keys" />
    <${Stat} label="Hit rate" value=${calls ? percent(sum("hits") / calls) : "–"} hint="answered with a kept result" />
    <${Stat} label="Waited" value=${number(sum("waits"))} hint=${`${duration(sum("waitedMs")) || "0 ms"} in all`} />
    <${Stat} label="Errors" value=${number(sum("errors"))} kind=${sum("errors") ? "warn" : ""} />
  <//>`;
}

function Find() {
  const [typed, setTyped] = useState("");
  const look = (event) => {
    event.preventDefault();
    if (typed.trim()) go("/keys/record", { key: typed.trim() });
  };
  return html`<form class="find card" role="search" aria-label="Find a record" onSubmit=${look}>
    <${Field} label="Find a record" hint="The key as a client sent it in Idempotency-Key, or 8 or more of the first letters of a stored key."><input type="search" value=${typed} onInput=${(event) => setTyped(event.target.value)} placeholder="order-2026-0815" /><//>
    <button type="submit" class="primary">Find</button></form>`;
}

function Filters({ now }) {
  const set = (name) => (event) => refine({ [name]: event.target.value.trim() });
  return html`<form class="console-filters card" role="search" aria-label="Filter records" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="Scope"><input value=${now.scope || ""} onChange=${set("scope")} placeholder="extract" list="scopes" />
      <datalist id="scopes"><option value="extract" /><option value="extraction" /></datalist><//>
    <${Field} label="State"><select value=${now.state || ""} onChange=${set("state")}><option value="">Any</option>${Object.keys(STATES).map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select><//>
    <${Field} label="Route"><input value=${now.route || ""} onChange=${set("route")} placeholder="/api/v1/extract" /><//>
    <${Field} label="Method"><select value=${now.method || ""} onChange=${set("method")}><option value="">Any</option>${METHODS.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select><//>
    <${Field} label="Status code"><input type="number" min="100" max="599" value=${now.status || ""} onChange=${set("status")} placeholder="200" /><//>
    <${Field} label="From"><input type="date" value=${now.from || ""} onChange=${set("from")} /><//>
    <${Field} label="To"><input type="date" value=${now.to || ""} onChange=${set("to")} /><//>
  </form>`;
}

const RECORDS = [
  { label: "Key", render: (one) => html`<a class="mono" href=${href("/keys/record", { key: one.key, scope: one.scope })}>${one.clientKey.replace(/^sha256-(.{16}).*/, "$1…")}</a>` },
  { label: "State", render: (one) => html`<${Badge} kind=${STATES[one.state]}>${one.state}<//>` },
  { label: "Scope", key: "scope" },
  { label: "Request", render: (one) => (one.route ? html`<span class="mono">${one.method} ${one.route}</span>` : "–") },
  { label: "Status", number: true, render: (one) => one.statusCode ?? "–" },
  { label: "Attempt", number: true, key: "attempt" },
  { label: "Created", render: (one) => when(one.createdAt) },
  { label: "Kept until", render: (one) => (one.expiresAt ? when(one.expiresAt) : "it is forgotten") },
];

function Keys({ query: now }) {
  const hours = hoursOf(now.hours);
  const counts = useCounts(hours);
  const filter = { scope: now.scope, state: now.state, route: now.route, method: now.method, status: now.status, from: dayOf(now.from), before: dayOf(now.to, { end: true }) };
  const pages = usePages(async (after) => {
    const page = await get(`/api/v1/keys${query({ ...filter, limit: 25, after })}`);
    return { rows: page.keys, next: page.next };
  }, [JSON.stringify(filter)]);
  return html`<div class="page stack">
    <div class="page-head"><div><h1>Keys</h1><p>One result is accepted for each key, and every caller gets it. See who got what, and why.</p></div><${Span} hours=${hours} /></div>
    <${Failure} error=${counts.error} />
    ${counts.data && html`${counts.data.advice.map((one) => html`<${Notice} key=${one.scope} kind="warn" title=${`${ADVICE[one.kind]}: ${one.scope}`}>${one.said}<//>`)}
      <${Totals} data=${counts.data} /><${Charts} data=${counts.data} hours=${hours} />`}
    <${Find} />
    <${Filters} now=${now} />
    ${pages.loading && !pages.rows.length ? html`<${Loading} />` : !pages.error && html`<${Table} caption="Records" columns=${RECORDS} rows=${pages.rows} rowKey=${(one) => one.id}
      empty=${Object.values(filter).some(Boolean) ? "No record fits these filters." : "No record yet. Every run makes one, and every request with an Idempotency-Key."} />`}
    <${More} pages=${pages} />
  </div>`;
}

function Change({ what, record, onDone, onClose }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState(null);
  const change = async (event) => {
    event.preventDefault();
    try {
      await post(`/api/v1/keys/${what}`, { key: record.key, scope: record.scope, reason: reason.trim() });
      toast(what === "release" ? "Released: the next request runs the work." : "Forgotten: the next request runs the work.");
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
  };
  const about = what === "release"
    ? "The holder loses its claim: whatever it still does is refused, and the next request runs the work. Only do this if you know that it is dead."
    : "The record goes with its result: the next request runs the work again.";
  return html`<${Dialog} title=${what === "release" ? "Release this key" : "Forget this key"} onClose=${onClose}>
    <form class="stack" onSubmit=${change}><p>${about} It is written down with your name and the reason.</p>
      <${Field} label="Reason"><input required maxlength="1000" value=${reason} onInput=${(event) => setReason(event.target.value)} /><//>
      <${Failure} error=${error} />
      <div class="row end"><button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="danger" disabled=${!reason.trim()}>${what === "release" ? "Release" : "Forget"}</button></div></form>
  <//>`;
}

const FACTS = [
  ["Scope", (one) => one.scope], ["State", (one) => html`<${Badge} kind=${STATES[one.state]}>${one.state}<//>`],
  ["Request", (one) => (one.route ? `${one.method} ${one.route}` : "–")], ["Status code", (one) => one.statusCode ?? "–"],
  ["Holder", (one) => one.owner || "–"], ["Attempt", (one) => one.attempt], ["Fence", (one) => one.fence],
  ["Created", (one) => when(one.createdAt)], ["Lease until", (one) => when(one.leaseUntil)], ["Completed", (one) => when(one.completedAt) || "–"],
  ["Kept until", (one) => when(one.expiresAt) || "it is forgotten"], ["Tags", (one) => one.tags.join(", ") || "–"], ["Stored key", (one) => html`<${Key} value=${one.key} length=${24} />`],
];

// The service writes instants as it does everywhere; here they are read by people.
const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;
const withTimes = (words) => words.split(INSTANT).map((part, index) => (index % 2 ? when(part, "medium") : part));

function Record({ query: now }) {
  const { data, error } = useAsked(() => get(`/api/v1/keys/explain${query({ key: now.key, scope: now.scope })}`), [now.key, now.scope]);
  const [change, setChange] = useState(null);
  useTitle(data?.clientKey);
  const others = error?.body?.keys;
  return html`<div class="page stack"><p class="crumbs"><a href="#/keys">Keys</a> / record</p>
    ${error && html`<h1>${others ? "Several records have this key" : "This record cannot be shown"}</h1><${Failure} error=${error} />`}
    ${others && html`<ul class="plain">${others.map((one) => {
      const at = one.lastIndexOf(" in ");
      return html`<li key=${one}><a class="mono" href=${href("/keys/record", { key: one.slice(0, at), scope: one.slice(at + 4) })}>${one}</a></li>`;
    })}</ul>`}
    ${!error && !data && html`<${Loading} />`}
    ${data && html`<div class="page-head"><div><h1 class="mono-title">${data.clientKey}</h1><p>${data.scope}</p></div>
      ${mayChange() && html`<div class="row">${data.state === "held" && html`<button type="button" onClick=${() => setChange("release")}>Release…</button>`}
        <button type="button" class="danger" onClick=${() => setChange("forget")}>Forget…</button></div>`}</div>
      <div class="record"><section class="card record-words" aria-label="In words">${data.words.map((one, index) => html`<p key=${index}>${withTimes(one)}</p>`)}</section>
        <dl class="facts card">${FACTS.map(([label, show]) => html`<div key=${label}><dt>${label}</dt><dd>${show(data)}</dd></div>`)}</dl></div>
      ${data.scope === "extraction" && html`<p><a class="button" href=${href(`/runs/${data.key}/timeline`)}>The run of this key</a></p>`}`}
    ${change && html`<${Change} what=${change} record=${data} onClose=${() => setChange(null)} onDone=${() => { setChange(null); go("/keys"); }} />`}
  </div>`;
}

addPage({ path: "/keys", title: "Keys", view: Keys, nav: "Keys", order: 50 });
addPage({ path: "/keys/record", title: "Record", view: Record, section: "Keys" });
