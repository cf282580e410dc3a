// A run in Studio: its progress while it works, its workspace, its downloads; and a reviewer's tools.
import { html, useEffect, useMemo, useState } from "./html.js";
import { download, get, post, query as queryOf } from "./api.js";
import { Badge, Dialog, Field, Formats, Key, Loading, Notice, Status, complain, copy, duration, plural, toast, Unavailable, useAsked, useTitle } from "./components.js";
import { GraphModel, isUnderWay } from "./graph_model.js";
import { STAGES, currentNotices, liveView, useLiveRun } from "./live_run.js";
import { addPage, currentAddress, href, refine, route } from "./router.js";
import { useReview } from "./review.js";
import { Workspace } from "./workspace.js";

const FORMATS = [
  ["turtle", "Turtle", "ttl"], ["jsonld", "JSON-LD", "jsonld"], ["nquads", "N-Quads", "nq"], ["graphml", "GraphML", "graphml"],
  ["csv", "CSV", "csv"], ["cypher", "Cypher", "cypher"], ["json", "JSON", "json"], ["html", "One HTML file with this viewer", "html"],
];

function Downloads({ run, hasDecisions, onClose }) {
  const [version, setVersion] = useState(hasDecisions ? "reviewed" : "found");
  const [busy, setBusy] = useState(false);
  const name = (run.document || run.idempotencyKey.slice(7, 19)).replace(/\.[^.]+$/, "");
  const path = `/api/v1/runs/${run.idempotencyKey}`;
  const fetch = async (format, suffix) => {
    setBusy(true);
    await download(`${path}/graph${queryOf({ format, version })}`, `${name}.${suffix}`).catch(complain);
    setBusy(false);
  };
  const examples = () => download(`${path}/examples`, `${name}-examples.jsonl`).catch(complain);
  return html`<${Dialog} title="Download" onClose=${onClose}>
    <${Field} label="Version" hint=${hasDecisions ? "" : "Nobody has reviewed it yet."}><select value=${version} onChange=${(event) => setVersion(event.target.value)}>
      <option value="reviewed" disabled=${!hasDecisions}>as reviewed</option><option value="found">as found</option></select><//>
    <${Formats} formats=${FORMATS} isBusy=${busy} onChoose=${fetch} />
    ${hasDecisions && html`<div><h3>Examples</h3><p class="muted small">What reviewers decided, for <code>sameas learn</code> and the prompts of models.</p>
      <button type="button" onClick=${examples}>examples.jsonl</button></div>`}
  <//>`;
}

function Progress({ run, live, onCancel }) {
  const { progress, connection } = live;
  const percent = Math.round(progress.progress * 100);
  const known = progress.cached ? `; ${plural(progress.cached, "chunk")} known from before` : "";
  const noteOf = (stage) => stage?.state === "done" ? duration(stage.ms) : stage?.total ? `${stage.done} of ${stage.total}` : "";
  return html`<section class="card progress" aria-label="Progress">
    <div class="row spread"><strong class="capital">${progress.stage ? progress.stage.replaceAll("_", " ") : run.status === "pending" ? "waiting for its turn" : "starting"}</strong>
      <div class="row"><span class="muted" role="status">${plural(progress.entities.size, "entity", "entities")}, ${plural(progress.relations.size, "relation")} so far${known}</span>
        <button type="button" class="danger small" onClick=${onCancel}>Cancel the run</button></div></div>
    <div class="meter" role="progressbar" aria-label="Progress of the run" aria-valuemin="0" aria-valuemax="100" aria-valuenow=${percent}><span style=${{ inlineSize: `${percent}%` }}></span></div>
    <ol class="stages">${STAGES.map((stage) => {
      const now = progress.stages[stage];
      return html`<li key=${stage} class=${now?.state ?? "waiting"}><span class="capital">${stage.replaceAll("_", " ")}</span><span class="stage-note">${noteOf(now)}</span></li>`;
    })}</ol>
    ${currentNotices(progress).map((one) => html`<${Notice} key=${one.about} kind=${one.kind}>${one.text}<//>`)}
    ${connection === "waiting" && html`<${Notice} kind="warn">Connection lost; reconnecting. Nothing of the run is lost.<//>`}
  </section>`;
}

function RunHead({ run, model, isLive, version, onDownload, onShare, review }) {
  const about = [run.extractor?.name, run.ontologyNames?.[0], run.durationMs && duration(run.durationMs)].filter(Boolean).join(" · ");
  return html`<header class="run-head">
    <div class="run-title"><h1><bdi>${run.document || "Graph of a text"}</bdi></h1>
      <p class="row"><${Status} status=${run.status} />${run.outcome && run.outcome !== "COMPLETE" && html`<${Badge} kind="warn">${run.outcome.toLowerCase().replaceAll("_", " ")}<//>`}
        <span class="muted">${about}</span><${Key} value=${run.idempotencyKey} /></p></div>
    ${!isLive && html`<div class="row">
      ${(review.count > 0 || version === "found") && html`<select aria-label="Version" value=${version} onChange=${(event) => refine({ version: event.target.value, s: "" })}>
        <option value="reviewed">as reviewed${review.count ? ` (${review.count})` : ""}</option><option value="found">as found</option></select>`}
      <button type="button" onClick=${review.start}>Review</button>
      <a class="button" href=${href("/compare", { left: run.idempotencyKey })}>Compare</a>
      <a class="button" href=${href("/", { from: run.idempotencyKey })}>Run again</a>
      <button type="button" onClick=${onShare}>Copy link</button>
      <button type="button" class="primary" onClick=${onDownload}>Download</button></div>`}
  </header>`;
}

function RunPage({ params, query }) {
  const version = query.version === "found" ? "found" : "reviewed";
  const asked = useAsked(() => get(`/api/v1/runs/${encodeURIComponent(params.key)}/view?version=${version}`), [params.key, version]);
  const [changed, setChanged] = useState(null);
  const [dialog, setDialog] = useState("");
  // A decision is answered with the whole view.
  const view = changed?.of === asked.data ? changed.view : asked.data;
  const isLive = Boolean(view && isUnderWay(view.run));
  const key = view?.run.idempotencyKey ?? params.key;
  useTitle(view?.run.document);
  const live = useLiveRun(key, isLive, () => {
    // Facts have other numbers when all of them are known.
    if (route.get().query.s?.startsWith("r:")) refine({ s: "" });
    asked.reload();
  });
  // A run that has just begun may not have written its text yet.
  useEffect(() => {
    if (!isLive || view.text !== null) return undefined;
    const again = setTimeout(asked.reload, 500);
    return () => clearTimeout(again);
  }, [view, isLive]);
  const model = useMemo(() => view && new GraphModel(isLive ? liveView(view, live.progress) : view), [view, isLive, isLive ? live.progress.found : 0]);
  const review = useReview({ key, model, query, isOff: isLive || version === "found", onView: (next) => setChanged({ of: asked.data, view: next }) });
  if (asked.error) return html`<${Unavailable} title="This run cannot be shown" error=${asked.error} />`;
  if (!view || !model) return html`<${Loading} what="Opening the run" />`;
  const cancel = () => post(`/api/v1/runs/${key}/cancel`).then(() => toast("Cancelled. What is done of it is kept for the next time."), complain);
  const share = () => copy(currentAddress(), "Copied. The link opens this very view.");
  const run = view.run;
  const problem = run.errors?.at(-1)?.message;
  return html`<div class="run-page">
    <${RunHead} run=${run} model=${model} isLive=${isLive} version=${version} onDownload=${() => setDialog("download")} onShare=${share} review=${review} />
    ${isLive && html`<${Progress} run=${run} live=${live} onCancel=${cancel} />`}
    ${run.status === "failed" && html`<${Notice} kind="bad" title="The run failed">${problem}<//>`}
    ${run.status === "partial" && html`<${Notice} kind="warn" title="Not all of it was done">${problem ?? "Extract again to have the rest done; what is there is kept."}<//>`}
    <${Workspace} model=${model} query=${query} sideTab=${!isLive ? "selection" : model.relations.length ? "relations" : "entities"} extra=${review.tabs} actionsFor=${review.actionsFor} onSelectText=${review.onSelectText} />
    ${review.dialog}
    ${dialog === "download" && html`<${Downloads} run=${run} hasDecisions=${view.decisions.some((one) => one.state === "applied")} onClose=${() => setDialog("")} />`}
  </div>`;
}

addPage({ path: "/studio/:key", title: "Run", view: RunPage, section: "Studio" });
