// The graph on a canvas. What it shows is in the lists beside it, too, for those who cannot see or point.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { number, plural } from "./components.js";
import { LABELS_UP_TO, MOST, WIDE, colours, drawLabels, drawPredicates, graphData, gravity, radiusOf, roomOf, valueId } from "./graph_layout.js";
import { PLACED_UP_TO, placeGraph } from "./graph_places.js";

const MARGIN = 6;
const isInside = ({ x, y }, frame) => x > MARGIN && y > MARGIN && x < frame.clientWidth - MARGIN && y < frame.clientHeight - MARGIN;
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// A graph of three things need not fill the wall.
const CLOSEST = 1.6;
// Pixels around the graph, and above it, where the buttons stand.
const PADDING = 14;
const ABOVE = 44;
// Milliseconds in which things go to their places.
const MOVING = 450;
// Up to so many things, the values of relations are drawn without being asked for.
const WITH_VALUES = 40;
const NONE = new Set();
// Relations of the chosen entity that are named on the canvas at most.
const NAMED_LINKS = 16;

// Where a part is hidden for now, any frame will do.
const frameOf = (element) => ({ width: Math.max(240, (element.clientWidth || 640) - 2 * PADDING), height: Math.max(180, (element.clientHeight || 420) - PADDING - ABOVE) });

// The whole graph, with its names, below the buttons.
function fit(chart, element, ms = 0) {
  const { nodes } = chart.graphData();
  if (!nodes.length || !element.clientWidth) return;
  const goal = (node, axis) => node.goal?.[axis] ?? node[axis] ?? 0;
  const reach = nodes.map((node) => {
    const half = Math.max(radiusOf(node), chart.isSmall ? (node.room?.w ?? 0) / 2 : 0), x = goal(node, "x"), y = goal(node, "y");
    const name = chart.isSmall ? (node.room?.h ?? 0) + 3 : 2;
    return [x - half, x + half, y - radiusOf(node) - name, y + radiusOf(node) + name];
  });
  const edge = (at, pick) => reach.reduce((found, one) => pick(found, one[at]), reach[0][at]);
  const [left, right, top, bottom] = [edge(0, Math.min), edge(1, Math.max), edge(2, Math.min), edge(3, Math.max)];
  const frame = frameOf(element);
  const zoom = Math.min(CLOSEST, frame.width / Math.max(1, right - left), frame.height / Math.max(1, bottom - top));
  chart.zoom(zoom, ms);
  chart.centerAt((left + right) / 2, (top + bottom) / 2 - (ABOVE - PADDING) / 2 / zoom, ms);
}

// Gives a small graph its places and takes its things there.
function place(chart, element, data, paint) {
  const isWide = element.clientWidth > WIDE, canvas = document.createElement("canvas").getContext("2d");
  const nodes = [...data.nodes.values()], before = new Map(nodes.map((node) => [node, { x: node.x, y: node.y }]));
  for (const node of nodes) {
    node.room = roomOf(canvas, node, paint, isWide);
    // A thing may be on its way: it is placed by where it goes.
    if (node.goal) Object.assign(node, node.goal);
  }
  const places = nodes.map((node) => ({ id: node.id, r: radiusOf(node), ...node.room, ...(node.x === undefined ? {} : { x: node.x, y: node.y }) }));
  placeGraph(places, data.links.map(({ source, target }) => ({ source: source.id ?? source, target: target.id ?? target })), frameOf(element));
  const isMoving = !isStill() && nodes.some((node) => before.get(node).x !== undefined);
  for (const [at, node] of nodes.entries()) {
    const { x, y } = places[at], from = before.get(node);
    node.goal = { x, y };
    node.from = from.x === undefined ? { x, y } : from;
    Object.assign(node, isMoving ? node.from : node.goal, { vx: 0, vy: 0, fx: undefined, fy: undefined });
  }
  return isMoving;
}

// What is chosen, and of one thing its neighbours.
function nearOf(shown, hot, hotRelation) {
  if (hotRelation) return NONE;
  if (hot.size !== 1) return hot;
  const near = new Set(hot);
  for (const relation of shown.relations) {
    if (!hot.has(relation.subject) && !hot.has(relation.object)) continue;
    near.add(relation.subject);
    near.add(relation.value ? valueId(relation) : relation.object);
  }
  return near;
}

// `hot` are the ids of the things to stress. With `onEnlarge` there is a button that asks for more room.
export function GraphPane({ model, shown, hot, hotRelation, onEntity, onRelation, isLarge = false, onEnlarge = null }) {
  const frame = useRef(null), graph = useRef(null), nodes = useRef(null);
  const state = useRef({ hot, hotRelation, pointed: null, near: NONE });
  const [left, setLeft] = useState(0);
  const [failed, setFailed] = useState(false);
  const [wish, setWish] = useState(null);
  const values = shown.relations.reduce((sum, one) => sum + Boolean(one.value), 0);
  const withValues = wish ?? shown.entities.length + values <= WITH_VALUES;
  Object.assign(state.current, { hot, hotRelation, near: useMemo(() => nearOf(shown, hot, hotRelation), [shown, hot, hotRelation]) });
  useEffect(() => {
    if (!window.ForceGraph) {
      setFailed(true);
      return undefined;
    }
    const element = frame.current;
    let paint = colours(element);
    const repaint = () => chart.nodeCanvasObject(chart.nodeCanvasObject());
    // The chosen relation, or every relation of the one entity that is chosen.
    const isHot = (link) => {
      const { hot: now, hotRelation: relation } = state.current;
      return relation ? link.relation === relation : now.size === 1 && (now.has(link.source.id) || now.has(link.target.id));
    };
    // What has nothing to do with the chosen steps back.
    const isAside = (node) => state.current.near.size > 0 && !state.current.near.has(node.id);
    const isStressed = () => state.current.hotRelation || state.current.hot.size === 1;
    const chart = new window.ForceGraph(element)
      .nodeId("id")
      .nodeLabel(null)
      .linkLabel(null)
      .autoPauseRedraw(true)
      .d3VelocityDecay(0.35)
      .linkCurvature((link) => link.curve)
      .linkColor((link) => (isHot(link) ? paint.accent : `${paint.line}${isStressed() ? "59" : chart.isSmall ? "b0" : "77"}`))
      .linkWidth((link) => (link.relation === state.current.hotRelation ? 2.5 : isHot(link) ? 1.6 : 1))
      .linkDirectionalArrowLength((link) => (isHot(link) ? 6 : chart.isSmall ? 4.5 : 0))
      .linkDirectionalArrowRelPos(1)
      // So large does the chart think that a thing is: arrows end at its rim.
      .nodeVal((node) => ((radiusOf(node) + 1) / chart.nodeRelSize()) ** 2)
      .nodeCanvasObject((node, canvas, scale) => {
        const chosen = state.current.hot.has(node.id);
        const radius = radiusOf(node);
        canvas.globalAlpha = isAside(node) ? 0.42 : 1;
        canvas.fillStyle = paint.strong[node.hue];
        canvas.beginPath();
        if (node.value) canvas.rect(node.x - radius, node.y - radius, 2 * radius, 2 * radius);
        else canvas.arc(node.x, node.y, radius, 0, 2 * Math.PI);
        // A rim in the colour of the ground keeps things apart from lines that go by.
        if (chart.isSmall) {
          canvas.strokeStyle = paint.ground;
          canvas.lineWidth = 3 / scale;
          canvas.stroke();
        }
        canvas.fill();
        if (chosen || node.id === state.current.pointed) {
          canvas.beginPath();
          canvas.arc(node.x, node.y, radius + 2.5, 0, 2 * Math.PI);
          canvas.strokeStyle = chosen ? paint.accent : paint.text;
          canvas.lineWidth = (chosen ? 2 : 1) / scale + (chosen ? 0.6 : 0);
          canvas.stroke();
        }
        canvas.globalAlpha = 1;
      })
      .onRenderFramePost((canvas, scale) => {
        const from = chart.screen2GraphCoords(0, 0), to = chart.screen2GraphCoords(element.clientWidth, element.clientHeight);
        const isSeen = (node) => node.x > from.x && node.x < to.x && node.y > from.y && node.y < to.y;
        const fits = (node) => (chart.isSmall || scale > 2.2) && isSeen(node);
        const { hot: now, pointed } = state.current;
        const named = pointed && !now.has(pointed) ? new Set([...now, pointed]) : now;
        const drawn = [...(nodes.current?.values() ?? [])];
        const lines = chart.graphData().links;
        const labels = drawLabels(canvas, scale, drawn, { hot: named, isAside, paint, fits, from, to, links: chart.isSmall ? lines : [] });
        const links = now.size ? lines.filter(isHot) : [];
        if (links.length <= NAMED_LINKS) drawPredicates(canvas, scale, links, drawn, paint, labels);
        element.labels = labels;
      })
      .nodePointerAreaPaint((node, colour, canvas) => {
        canvas.fillStyle = colour;
        canvas.beginPath();
        canvas.arc(node.x, node.y, radiusOf(node) + 2, 0, 2 * Math.PI);
        canvas.fill();
      })
      .onNodeHover((node) => {
        state.current.pointed = node?.id ?? null;
        repaint();
      })
      .onNodeClick((node) => node.entity && onEntity(node.entity))
      .onLinkClick((link) => onRelation(link.relation))
      // Where somebody has put it is its place.
      .onNodeDragEnd((node) => { node.goal = { x: node.x, y: node.y }; })
      .onEngineStop(() => {
        if (chart.isPlaced) return;
        if (!chart.wasFitted) fit(chart, element);
        chart.wasFitted = true;
        element.dataset.settled = "yes";
      });
    graph.current = chart;
    const forces = { charge: chart.d3Force("charge"), center: chart.d3Force("center"), gravity: gravity(element), pull: chart.d3Force("link").strength() };
    let moving = 0;
    // Takes everything to its place, one frame after the other.
    const settle = (began) => {
      const now = performance.now();
      const done = isStill() ? 1 : Math.min(1, (now - began) / MOVING), ease = 1 - (1 - done) ** 3;
      for (const node of nodes.current.values()) {
        if (!node.goal || !node.from) continue;
        node.x = node.from.x + (node.goal.x - node.from.x) * ease;
        node.y = node.from.y + (node.goal.y - node.from.y) * ease;
      }
      repaint();
      if (done < 1) moving = requestAnimationFrame(() => settle(began));
      else element.dataset.settled = "yes";
    };
    const lay = (data) => {
      cancelAnimationFrame(moving);
      delete element.dataset.settled;
      nodes.current = data.nodes;
      const size = data.nodes.size, isLong = size > 1000;
      chart.isPlaced = size <= PLACED_UP_TO;
      chart.isSmall = size <= LABELS_UP_TO;
      chart.wasFitted = false;
      const isMoving = chart.isPlaced && place(chart, element, data, paint);
      chart.d3Force("charge", chart.isPlaced ? null : forces.charge).d3Force("center", chart.isPlaced ? null : forces.center).d3Force("gravity", chart.isPlaced ? null : forces.gravity);
      chart.d3Force("link").strength(chart.isPlaced ? 0 : forces.pull);
      if (chart.isPlaced) chart.warmupTicks(0).cooldownTicks(0);
      else {
        forces.charge.strength(size > 500 ? -18 : -60).distanceMax(size > 500 ? 200 : 600);
        chart.d3Force("link").distance(30);
        // A crowd is laid out while one looks.
        chart.warmupTicks(!isLong || isStill() ? 120 : 0).cooldownTicks(isStill() ? 0 : Infinity).cooldownTime(isLong ? 6000 : 1500);
      }
      chart.graphData({ nodes: [...data.nodes.values()], links: data.links });
      fit(chart, element, isMoving ? MOVING : 0);
      if (chart.isPlaced) settle(performance.now());
    };
    chart.lay = lay;
    // A frame of another shape is filled anew.
    let was = null;
    const resize = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = element;
      chart.width(width).height(height);
      const isOther = was && width && (Math.abs(width - was.width) > 40 || Math.abs(height - was.height) > 40);
      if (!was || isOther) was = { width, height };
      if (!isOther || !nodes.current) return;
      if (chart.isPlaced) lay({ nodes: nodes.current, links: chart.graphData().links });
      else fit(chart, element);
    });
    resize.observe(element);
    const recolour = () => {
      paint = colours(element);
      repaint();
    };
    addEventListener("themechange", recolour);
    // For tests and for people at the console: where a thing is on the screen.
    element.whereIs = (id) => {
      const node = nodes.current?.get(id);
      return node && chart.graph2ScreenCoords(node.x, node.y);
    };
    element.chart = chart;
    return () => {
      cancelAnimationFrame(moving);
      removeEventListener("themechange", recolour);
      resize.disconnect();
      chart._destructor();
    };
  }, []);
  useEffect(() => {
    if (!graph.current) return;
    const data = graphData(model, shown, nodes.current, withValues);
    graph.current.lay(data);
    setLeft(data.left);
  }, [model, shown, withValues]);
  useEffect(() => {
    const chart = graph.current;
    if (!chart) return;
    chart.nodeCanvasObject(chart.nodeCanvasObject());
    const [first] = hot;
    const node = first && nodes.current?.get(first);
    // What can be seen stays where it is: a graph that jumps at every choice is hard to read.
    if (node && node.x !== undefined && !isInside(chart.graph2ScreenCoords(node.x, node.y), frame.current)) chart.centerAt(node.x, node.y, isStill() ? 0 : 350);
  }, [hot, hotRelation]);
  const zoom = (by) => graph.current?.zoom(graph.current.zoom() * by, isStill() ? 0 : 200);
  const tool = (sign, label, onClick) => html`<button type="button" class="small" aria-label=${label} title=${label} onClick=${onClick}>${sign}</button>`;
  return html`<div class="graph-pane">
    <div class="canvas" ref=${frame} role="img" aria-label=${`Graph of ${plural(shown.entities.length, "entity", "entities")} and ${plural(shown.relations.length, "relation")}; the same is in the lists`}></div>
    <div class="graph-tools" role="group" aria-label="View of the graph">${values > 0 && html`<button type="button" class="small" aria-pressed=${withValues} title="Years, amounts and other values of relations" onClick=${() => setWish(!withValues)}>Values</button>`}
      ${tool("−", "Zoom out", () => zoom(1 / 1.4))}${tool("+", "Zoom in", () => zoom(1.4))}
      <button type="button" class="small" onClick=${() => graph.current && fit(graph.current, frame.current)}>Fit</button>
      ${onEnlarge && html`<button type="button" class="small enlarge" aria-pressed=${isLarge} onClick=${onEnlarge}>Enlarge</button>`}</div>
    ${left > 0 && html`<p class="graph-note">The ${number(MOST)} most connected are drawn; ${number(left)} more are in the lists.</p>`}
    ${failed && html`<p class="graph-note">The graph cannot be drawn here; the lists have all of it.</p>`}
    ${!shown.entities.length && html`<p class="graph-note">Nothing to draw${model.isUnderWay ? " yet" : ""}.</p>`}
  </div>`;
}
