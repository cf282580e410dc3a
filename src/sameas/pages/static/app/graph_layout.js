// How a graph lies on its canvas: what is drawn of a model, the forces that lay it out, and the names beside its things.
import { shorten } from "./components.js";

// Entities that are drawn at most, and up to how many all are given names.
export const MOST = 2500;
export const LABELS_UP_TO = 200;

export function colours(node) {
  const style = getComputedStyle(node);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    text: read("--text"), muted: read("--muted"), line: read("--line-strong"), ground: read("--surface"), accent: read("--accent"),
    font: getComputedStyle(document.body).fontFamily,
    // On a wall all letters are larger.
    letters: parseFloat(getComputedStyle(document.documentElement).fontSize) / 16,
    strong: Array.from({ length: 12 }, (_, index) => read(`--hue-strong-${index}`)),
  };
}

// Pulls everything a little to the middle, so that what is not connected does not fly away, and gives the whole the
// shape of the frame.
export function gravity(frame) {
  let nodes = [];
  const pull = (alpha) => {
    const strength = nodes.length <= LABELS_UP_TO ? 0.14 : 0.075;
    const shape = Math.sqrt((frame.clientWidth || 1) / (frame.clientHeight || 1));
    for (const node of nodes) {
      node.vx -= (node.x * strength * alpha) / shape;
      node.vy -= node.y * strength * alpha * shape;
    }
  };
  pull.initialize = (all) => { nodes = all; };
  return pull;
}

const overlap = (one, other) => one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;

export const radiusOf = (node) => (node.value ? 2.5 : 3 + 2.2 * node.size);
const discOf = (node) => ({ x: node.x - radiusOf(node), y: node.y - radiusOf(node), w: 2 * radiusOf(node), h: 2 * radiusOf(node) });

const LABEL = 11;
// On a canvas of so many pixels there is room for larger letters.
const WIDE = 700;
// The best connected have their names even where they lie upon something small.
const FIRST = 10;
const MOST_LABELS = 150;
const LETTERS = 32;
const LETTER = 5.8;
const labelOf = (node) => shorten(node.name, LETTERS);

// Gives every entity of a small graph the room that its name takes. Values stand where there is room.
export function elbowRoom() {
  let boxes = [];
  const push = (alpha) => {
    for (let at = 0; at < boxes.length; at += 1) {
      for (let other = at + 1; other < boxes.length; other += 1) {
        const one = boxes[at], two = boxes[other];
        const dx = two.node.x - one.node.x, dy = two.node.y - one.node.y;
        const overX = (one.w + two.w) / 2 - Math.abs(dx), overY = (one.h + two.h) / 2 - Math.abs(dy);
        if (overX <= 0 || overY <= 0) continue;
        // Names are wide and low: up and down is the shorter way.
        const step = Math.min(overX, overY) * 0.5 * Math.min(1, alpha * 3);
        const axis = overX < overY ? "vx" : "vy", sign = (overX < overY ? dx : dy) < 0 ? -1 : 1;
        one.node[axis] -= step * sign;
        two.node[axis] += step * sign;
      }
    }
  };
  push.initialize = (nodes) => {
    boxes = nodes.length > LABELS_UP_TO ? [] : nodes.map((node) => ({ node, w: node.value ? 14 : Math.max(2 * radiusOf(node), labelOf(node).length * LETTER) + 8, h: node.value ? 14 : 2 * radiusOf(node) + LABEL + 8 }));
  };
  return push;
}

// Names below, above or beside their things, the chosen and the best connected first; a name that would lie upon another
// name or thing is left out until there is room.
export function drawLabels(canvas, scale, nodes, { hot, paint, fits, from, to }) {
  const isWide = (to.x - from.x) * scale > WIDE;
  const size = Math.max(((isWide ? LABEL + 1.5 : LABEL) * paint.letters) / scale, 2.5), gap = 2 / scale, taken = [];
  const isFree = (box) => !taken.some((one) => overlap(one, box));
  const few = nodes.length <= LABELS_UP_TO ? nodes.filter((node) => !node.value) : [];
  const isClear = (box, own, least = 0) => few.every((node) => node === own || node.size < least || !overlap(box, discOf(node)));
  const wanted = nodes.filter((node) => hot.has(node.id) || fits(node))
    .sort((one, other) => hot.has(other.id) - hot.has(one.id) || other.size - one.size);
  canvas.textAlign = "left";
  canvas.textBaseline = "top";
  for (const [rank, node] of wanted.entries()) {
    if (taken.length >= MOST_LABELS) break;
    const chosen = hot.has(node.id), radius = radiusOf(node);
    const label = labelOf(node);
    canvas.font = `${chosen ? 650 : 500} ${size}px ${paint.font}`;
    const w = canvas.measureText(label).width, h = size * 1.15;
    // Above and below it may stand to one side, so that the edge does not cut it.
    const middle = Math.max(from.x, Math.min(node.x - w / 2, to.x - w));
    const places = [[middle, node.y + radius + gap], [middle, node.y - radius - gap - h], [node.x + radius + gap, node.y - h / 2], [node.x - radius - gap - w, node.y - h / 2]]
      .map(([x, y]) => ({ x, y, w, h }))
      .filter((one, at) => at === 0 || (one.x >= from.x && one.x + w <= to.x && one.y >= from.y));
    const box = places.find((one) => isFree(one) && isClear(one, node)) 
      ?? (chosen || rank < FIRST ? places.find((one) => isFree(one) && isClear(one, node, node.size)) : null) ?? (chosen ? places[0] : null);
    if (!box) continue;
    taken.push(box);
    write(canvas, label, box, node.value && !chosen ? paint.muted : paint.text, paint.ground, scale);
  }
  return taken;
}

function write(canvas, words, place, colour, ground, scale) {
  canvas.lineWidth = 3 / scale;
  canvas.lineJoin = "round";
  canvas.strokeStyle = ground;
  canvas.strokeText(words, place.x, place.y);
  canvas.fillStyle = colour;
  canvas.fillText(words, place.x, place.y);
}

// What the chosen relations are called, in their middle.
export function drawPredicates(canvas, scale, links, nodes, paint, taken) {
  const size = (10 * paint.letters) / scale, h = size * 1.2;
  canvas.font = `600 ${size}px ${paint.font}`;
  canvas.textAlign = "left";
  canvas.textBaseline = "top";
  for (const { source, target, name } of links) {
    const w = canvas.measureText(name).width;
    const box = { x: (source.x + target.x - w) / 2, y: (source.y + target.y - h) / 2, w, h };
    if (taken.some((one) => overlap(one, box)) || nodes.some((node) => overlap(discOf(node), box))) continue;
    taken.push(box);
    write(canvas, name, box, paint.accent, paint.ground, scale);
  }
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
