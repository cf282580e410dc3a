// The graph on a canvas. What it shows is in the lists beside it, too, for those who cannot see or point.
import { html, useEffect, useRef, useState } from "./html.js";
import { number, plural } from "./components.js";
import { LABELS_UP_TO, MOST, colours, drawLabels, drawPredicates, elbowRoom, graphData, gravity, radiusOf } from "./graph_layout.js";

const MARGIN = 40;
const isInside = ({ x, y }, frame) => x > MARGIN && y > MARGIN && x < frame.clientWidth - MARGIN && y < frame.clientHeight - MARGIN;
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// A graph of three things need not fill the wall.
const CLOSEST = 2;
const PADDING = 34;
// Pixels that the middle lies lower, because the buttons stand above.
const LOWER = 14;
// So many nodes may lie wide apart.
const FEW = 40;
// Relations of the chosen entity that are named on the canvas at most.
const NAMED_LINKS = 16;

function fit(chart) {
  chart.zoomToFit(0, PADDING);
  if (chart.zoom() > CLOSEST) chart.zoom(CLOSEST);
  const { x, y } = chart.centerAt();
  chart.centerAt(x, y - LOWER / chart.zoom());
}

// `hot` are the ids of the things to stress. With `onEnlarge` there is a button that asks for more room.
export function GraphPane({ model, shown, hot, hotRelation, onEntity, onRelation, isLarge = false, onEnlarge = null }) {
  const place = useRef(null), graph = useRef(null), nodes = useRef(null);
  const state = useRef({ hot, hotRelation, pointed: null });
  const [left, setLeft] = useState(0);
  const [failed, setFailed] = useState(false);
  Object.assign(state.current, { hot, hotRelation });
  useEffect(() => {
    if (!window.ForceGraph) {
      setFailed(true);
      return undefined;
    }
    const element = place.current;
    let paint = colours(element);
    const repaint = () => chart.nodeCanvasObject(chart.nodeCanvasObject());
    // The chosen relation, or every relation of the one entity that is chosen.
    const isHot = (link) => {
      const { hot: now, hotRelation: relation } = state.current;
      return relation ? link.relation === relation : now.size === 1 && (now.has(link.source.id) || now.has(link.target.id));
    };
    const chart = new window.ForceGraph(element)
      .nodeId("id")
      .nodeLabel(null)
      .linkLabel(null)
      .autoPauseRedraw(true)
      .cooldownTime(6000)
      .d3VelocityDecay(0.35)
      .linkColor((link) => (isHot(link) ? paint.accent : `${paint.line}${state.current.hot.size === 1 || state.current.hotRelation ? "44" : "77"}`))
      .linkWidth((link) => (link.relation === state.current.hotRelation ? 2.5 : isHot(link) ? 1.6 : 1))
      .linkDirectionalArrowLength((link) => (isHot(link) || chart.isSmall ? 4 : 0))
      .linkDirectionalArrowRelPos(0.92)
      .nodeCanvasObject((node, canvas, scale) => {
        const chosen = state.current.hot.has(node.id);
        const radius = radiusOf(node);
        canvas.fillStyle = paint.strong[node.hue];
        canvas.beginPath();
        if (node.value) canvas.rect(node.x - radius, node.y - radius, 2 * radius, 2 * radius);
        else canvas.arc(node.x, node.y, radius, 0, 2 * Math.PI);
        canvas.fill();
        if (chosen || node.id === state.current.pointed) {
          canvas.strokeStyle = paint.text;
          canvas.lineWidth = (chosen ? 2 : 1) / scale + (chosen ? 1 : 0);
          canvas.stroke();
        }
      })
      .onRenderFramePost((canvas, scale) => {
        const from = chart.screen2GraphCoords(0, 0), to = chart.screen2GraphCoords(element.clientWidth, element.clientHeight);
        const isSeen = (node) => node.x > from.x && node.x < to.x && node.y > from.y && node.y < to.y;
        const fits = (node) => (chart.isSmall || scale > 2.2) && isSeen(node);
        const { hot: now, pointed } = state.current;
        const named = pointed && !now.has(pointed) ? new Set([...now, pointed]) : now;
        const drawn = [...(nodes.current?.values() ?? [])];
        const labels = drawLabels(canvas, scale, drawn, { hot: named, paint, fits, from, to });
        const links = now.size ? chart.graphData().links.filter(isHot) : [];
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
      .onEngineStop(() => {
        if (!chart.wasFitted) fit(chart);
        chart.wasFitted = true;
        element.dataset.settled = "yes";
      });
    graph.current = chart;
    chart.d3Force("gravity", gravity(element)).d3Force("room", elbowRoom());
    const resize = new ResizeObserver(() => chart.width(element.clientWidth).height(element.clientHeight));
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
      removeEventListener("themechange", recolour);
      resize.disconnect();
      chart._destructor();
    };
  }, []);
  useEffect(() => {
    const chart = graph.current;
    if (!chart) return undefined;
    const data = graphData(model, shown, nodes.current);
    const isLong = data.nodes.size > 300, isCrowd = data.nodes.size > 500;
    nodes.current = data.nodes;
    chart.isSmall = data.nodes.size <= LABELS_UP_TO;
    chart.wasFitted = false;
    delete place.current.dataset.settled;
    const isFew = data.nodes.size <= FEW;
    chart.d3Force("charge").strength(isCrowd ? -18 : isFew ? -120 : -60).distanceMax(isCrowd ? 200 : 600);
    chart.d3Force("link").distance(isFew ? 50 : chart.isSmall ? 40 : 30);
    // A small graph is laid out before it is shown; a large one while one looks.
    chart.warmupTicks(!isLong || isStill() ? 120 : 0).cooldownTime(isStill() ? 0 : isLong ? 6000 : 1500);
    chart.graphData({ nodes: [...data.nodes.values()], links: data.links });
    setLeft(data.left);
    const fitting = setTimeout(() => graph.current && fit(graph.current), 60);
    return () => clearTimeout(fitting);
  }, [model, shown]);
  const wasLarge = useRef(isLarge);
  useEffect(() => {
    if (wasLarge.current === isLarge) return undefined;
    wasLarge.current = isLarge;
    const fitting = setTimeout(() => graph.current && fit(graph.current), 60);
    return () => clearTimeout(fitting);
  }, [isLarge]);
  useEffect(() => {
    const chart = graph.current;
    if (!chart) return;
    chart.nodeCanvasObject(chart.nodeCanvasObject());
    const [first] = hot;
    const node = first && nodes.current?.get(first);
    // What can be seen stays where it is: a graph that jumps at every choice is hard to read.
    if (node && node.x !== undefined && !isInside(chart.graph2ScreenCoords(node.x, node.y), place.current)) chart.centerAt(node.x, node.y, isStill() ? 0 : 350);
  }, [hot, hotRelation]);
  const zoom = (by) => graph.current?.zoom(graph.current.zoom() * by, isStill() ? 0 : 200);
  const tool = (sign, label, onClick) => html`<button type="button" class="small" aria-label=${label} title=${label} onClick=${onClick}>${sign}</button>`;
  return html`<div class="graph-pane">
    <div class="canvas" ref=${place} role="img" aria-label=${`Graph of ${plural(shown.entities.length, "entity", "entities")} and ${plural(shown.relations.length, "relation")}; the same is in the lists`}></div>
    <div class="graph-tools" role="group" aria-label="View of the graph">${tool("−", "Zoom out", () => zoom(1 / 1.4))}${tool("+", "Zoom in", () => zoom(1.4))}
      <button type="button" class="small" onClick=${() => graph.current && fit(graph.current)}>Fit</button>
      ${onEnlarge && html`<button type="button" class="small enlarge" aria-pressed=${isLarge} onClick=${onEnlarge}>Enlarge</button>`}</div>
    ${left > 0 && html`<p class="graph-note">The ${number(MOST)} most connected are drawn; ${number(left)} more are in the lists.</p>`}
    ${failed && html`<p class="graph-note">The graph cannot be drawn here; the lists have all of it.</p>`}
    ${!shown.entities.length && html`<p class="graph-note">Nothing to draw${model.isUnderWay ? " yet" : ""}.</p>`}
  </div>`;
}
