// The graph on a canvas. What it shows is in the lists beside it, too, for those who cannot see or point.
import { html, useEffect, useRef, useState } from "./html.js";
import { number } from "./components.js";

const MOST = 2500;
const LABELS_UP_TO = 200;

function colours(node) {
  const style = getComputedStyle(node);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    text: read("--text"), muted: read("--muted"), line: read("--line-strong"), ground: read("--surface"), accent: read("--accent"),
    font: getComputedStyle(document.body).fontFamily,
    strong: Array.from({ length: 12 }, (_, index) => read(`--hue-strong-${index}`)),
  };
}

// Pulls everything a little to the middle, so that what is not connected does not fly away.
function gravity() {
  let nodes = [];
  const pull = (alpha) => {
    for (const node of nodes) {
      node.vx -= node.x * 0.06 * alpha;
      node.vy -= node.y * 0.09 * alpha;
    }
  };
  pull.initialize = (all) => { nodes = all; };
  return pull;
}

const radiusOf = (node) => (node.value ? 3 : 3 + 2.2 * node.size);

const LABEL = 11;
const MOST_LABELS = 150;

// Names below, above or beside their things, the chosen and the best connected first; a name that would lie upon another
// is left out until there is room.
function drawLabels(canvas, scale, nodes, { hot, paint, fits, from, to }) {
  const size = Math.max(LABEL / scale, 2.5), gap = 2 / scale, taken = [];
  const isFree = (box) => taken.every((one) => box.x >= one.x + one.w || one.x >= box.x + box.w || box.y >= one.y + one.h || one.y >= box.y + box.h);
  const few = nodes.length <= LABELS_UP_TO ? nodes : [];
  const isClear = (box, own) => few.every((node) => {
    const radius = radiusOf(node);
    return node === own || node.x + radius < box.x || node.x - radius > box.x + box.w || node.y + radius < box.y || node.y - radius > box.y + box.h;
  });
  const wanted = nodes.filter((node) => hot.has(node.id) || fits(node))
    .sort((one, other) => hot.has(other.id) - hot.has(one.id) || other.size - one.size);
  canvas.textAlign = "left";
  canvas.textBaseline = "top";
  for (const node of wanted) {
    if (taken.length >= MOST_LABELS) break;
    const chosen = hot.has(node.id), radius = radiusOf(node);
    const label = node.name.length > 32 ? `${node.name.slice(0, 31)}…` : node.name;
    canvas.font = `${chosen ? 650 : 500} ${size}px ${paint.font}`;
    const w = canvas.measureText(label).width, h = size * 1.15;
    // Above and below it may stand to one side, so that the edge does not cut it.
    const middle = Math.max(from.x, Math.min(node.x - w / 2, to.x - w));
    const places = [[middle, node.y + radius + gap], [middle, node.y - radius - gap - h], [node.x + radius + gap, node.y - h / 2], [node.x - radius - gap - w, node.y - h / 2]]
      .map(([x, y]) => ({ x, y, w, h }));
    const box = places.find((one) => isFree(one) && isClear(one, node)) ?? places.find(isFree) ?? (chosen ? places[0] : null);
    if (!box) continue;
    taken.push(box);
    canvas.lineWidth = 3 / scale;
    canvas.strokeStyle = paint.ground;
    canvas.strokeText(label, box.x, box.y);
    canvas.fillStyle = paint.text;
    canvas.fillText(label, box.x, box.y);
  }
  return taken;
}

// The nodes and links of what is shown; the most connected where it is too much.
export function graphData(model, shown, before) {
  const degree = new Map();
  for (const relation of shown.relations) {
    for (const end of [relation.subject, relation.object]) if (end) degree.set(end, (degree.get(end) ?? 0) + 1);
  }
  const ends = new Set(degree.keys());
  let entities = [...new Set([...shown.entities, ...[...ends].map((id) => model.byId.get(id)).filter(Boolean)])];
  const left = Math.max(0, entities.length - MOST);
  if (left) entities = entities.sort((one, other) => (degree.get(other.id) ?? 0) - (degree.get(one.id) ?? 0)).slice(0, MOST);
  const nodes = new Map();
  const place = (node) => {
    const old = before?.get(node.id);
    return old ? Object.assign(old, node) : node;
  };
  for (const entity of entities) nodes.set(entity.id, place({ id: entity.id, name: entity.name, hue: model.hue(entity), size: Math.sqrt(1 + (degree.get(entity.id) ?? 0)), entity }));
  const links = [];
  for (const relation of shown.relations) {
    if (!nodes.has(relation.subject)) continue;
    let target = relation.object;
    if (relation.value) {
      target = `value ${relation.value.value} ${relation.value.datatype} ${relation.value.unit ?? ""}`;
      if (!nodes.has(target)) nodes.set(target, place({ id: target, name: model.objectName(relation), hue: 11, size: 0.8, value: true }));
    } else if (!nodes.has(target)) continue;
    links.push({ source: relation.subject, target, relation, name: model.label(relation.predicate) });
  }
  return { nodes, links, left };
}

const MARGIN = 40;
const isInside = ({ x, y }, frame) => x > MARGIN && y > MARGIN && x < frame.clientWidth - MARGIN && y < frame.clientHeight - MARGIN;

export function GraphPane({ model, shown, hot, hotRelation, onEntity, onRelation }) {
  const place = useRef(null), graph = useRef(null), nodes = useRef(null);
  const state = useRef({ hot, hotRelation });
  const [left, setLeft] = useState(0);
  const [failed, setFailed] = useState(false);
  state.current = { hot, hotRelation };
  useEffect(() => {
    if (!window.ForceGraph) {
      setFailed(true);
      return undefined;
    }
    const element = place.current;
    let paint = colours(element);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const chart = new window.ForceGraph(element)
      .nodeId("id")
      .nodeLabel(null)
      .linkLabel(null)
      .autoPauseRedraw(true)
      .cooldownTime(6000)
      .d3VelocityDecay(0.35)
      .linkColor((link) => (link.relation === state.current.hotRelation ? paint.accent : `${paint.line}66`))
      .linkWidth((link) => (link.relation === state.current.hotRelation ? 3 : 1))
      .linkDirectionalArrowLength((link) => (link.relation === state.current.hotRelation || chart.isSmall ? 4 : 0))
      .linkDirectionalArrowRelPos(0.92)
      .nodeCanvasObject((node, canvas, scale) => {
        const chosen = state.current.hot.has(node.id);
        const radius = radiusOf(node);
        canvas.fillStyle = paint.strong[node.hue];
        canvas.beginPath();
        if (node.value) canvas.rect(node.x - radius, node.y - radius, 2 * radius, 2 * radius);
        else canvas.arc(node.x, node.y, radius, 0, 2 * Math.PI);
        canvas.fill();
        if (chosen) {
          canvas.strokeStyle = paint.text;
          canvas.lineWidth = 2 / scale + 1;
          canvas.stroke();
        }
      })
      .onRenderFramePost((canvas, scale) => {
        const from = chart.screen2GraphCoords(0, 0), to = chart.screen2GraphCoords(element.clientWidth, element.clientHeight);
        const isSeen = (node) => node.x > from.x && node.x < to.x && node.y > from.y && node.y < to.y;
        const fits = (node) => (chart.isSmall || scale > 2.2) && isSeen(node);
        element.labels = drawLabels(canvas, scale, [...(nodes.current?.values() ?? [])], { hot: state.current.hot, paint, fits, from, to });
      })
      .nodePointerAreaPaint((node, colour, canvas) => {
        canvas.fillStyle = colour;
        canvas.beginPath();
        canvas.arc(node.x, node.y, radiusOf(node) + 2, 0, 2 * Math.PI);
        canvas.fill();
      })
      .onNodeClick((node) => node.entity && onEntity(node.entity))
      .onLinkClick((link) => onRelation(link.relation))
      .onEngineStop(() => {
        if (!chart.wasFitted) chart.zoomToFit(still ? 0 : 300, 28);
        chart.wasFitted = true;
        element.dataset.settled = "yes";
      });
    graph.current = chart;
    chart.d3Force("gravity", gravity());
    const resize = new ResizeObserver(() => chart.width(element.clientWidth).height(element.clientHeight));
    resize.observe(element);
    const repaint = () => {
      paint = colours(element);
      chart.nodeCanvasObject(chart.nodeCanvasObject());
    };
    addEventListener("themechange", repaint);
    // For tests and for people at the console: where a thing is on the screen.
    element.whereIs = (id) => {
      const node = nodes.current?.get(id);
      return node && chart.graph2ScreenCoords(node.x, node.y);
    };
    element.chart = chart;
    return () => {
      removeEventListener("themechange", repaint);
      resize.disconnect();
      chart._destructor();
    };
  }, []);
  useEffect(() => {
    if (!graph.current) return undefined;
    const data = graphData(model, shown, nodes.current);
    nodes.current = data.nodes;
    graph.current.isSmall = data.nodes.size <= LABELS_UP_TO;
    graph.current.wasFitted = false;
    delete place.current.dataset.settled;
    graph.current.d3Force("charge").strength(data.nodes.size > 500 ? -18 : -70).distanceMax(data.nodes.size > 500 ? 200 : 600);
    // A small graph is laid out before it is shown; a large one while one looks.
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    graph.current.warmupTicks(data.nodes.size <= 300 || isStill ? 120 : 0).cooldownTime(isStill ? 0 : data.nodes.size <= 300 ? 1500 : 6000);
    graph.current.graphData({ nodes: [...data.nodes.values()], links: data.links });
    setLeft(data.left);
    const fit = setTimeout(() => graph.current?.zoomToFit(0, 28), 60);
    return () => clearTimeout(fit);
  }, [model, shown]);
  useEffect(() => {
    const chart = graph.current;
    if (!chart) return;
    chart.nodeCanvasObject(chart.nodeCanvasObject());
    const [first] = hot;
    const node = first && nodes.current?.get(first);
    // What can be seen stays where it is: a graph that jumps at every choice is hard to read.
    if (node && node.x !== undefined && !isInside(chart.graph2ScreenCoords(node.x, node.y), place.current)) chart.centerAt(node.x, node.y, matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 350);
  }, [hot, hotRelation]);
  return html`<div class="graph-pane">
    <div class="canvas" ref=${place} role="img" aria-label=${`Graph of ${shown.entities.length} entities and ${shown.relations.length} relations; the same is in the lists`}></div>
    <div class="graph-tools"><button type="button" class="small" onClick=${() => graph.current?.zoomToFit(300, 28)}>Fit</button></div>
    ${left > 0 && html`<p class="graph-note">The ${number(MOST)} most connected are drawn; ${number(left)} more are in the lists.</p>`}
    ${failed && html`<p class="graph-note">The graph cannot be drawn here; the lists have all of it.</p>`}
    ${!shown.entities.length && html`<p class="graph-note">Nothing to draw yet.</p>`}
  </div>`;
}
