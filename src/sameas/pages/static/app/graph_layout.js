// What of a model is drawn on a canvas, the pull that holds a large graph together, and the names beside its things.
import { shorten } from "./components.js";

// Entities that are drawn at most, and up to how many all are given names.
export const MOST = 2500;
export const LABELS_UP_TO = 300;

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
    const strength = 0.075;
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

export const radiusOf = (node) => (node.value ? 2.5 : Math.min(14, 3.2 + 2 * node.size));
const discOf = (node) => ({ x: node.x - radiusOf(node), y: node.y - radiusOf(node), w: 2 * radiusOf(node), h: 2 * radiusOf(node) });

const LABEL = 11;
// What has more relations than about six is named in stronger letters.
const HUB = 2.6;
// On a canvas of so many pixels there is room for larger letters.
export const WIDE = 700;
// The best connected have their names even where they lie upon something small.
const FIRST = 10;
const MOST_LABELS = 150;
const LETTERS = 32;
const labelOf = (node) => shorten(node.name, LETTERS);

// Names are a little smaller where a graph is seen from far away, and never larger than elsewhere on the page.
const lettersAt = (scale, paint, isWide) => (((isWide ? LABEL + 1.5 : LABEL) * paint.letters * Math.max(0.84, Math.min(1, scale))) / scale);

// Whether a line goes through a box.
function isCrossed(box, from, to) {
  let enter = 0, leave = 1;
  for (const [start, end, low, high] of [[from.x, to.x, box.x, box.x + box.w], [from.y, to.y, box.y, box.y + box.h]]) {
    const step = end - start;
    if (Math.abs(step) < 1e-9) {
      if (start < low || start > high) return false;
      continue;
    }
    const [first, last] = step > 0 ? [(low - start) / step, (high - start) / step] : [(high - start) / step, (low - start) / step];
    enter = Math.max(enter, first);
    leave = Math.min(leave, last);
    if (enter > leave) return false;
  }
  return true;
}

// Names below, above or beside their things, the chosen and the best connected first, where the fewest lines go through
// them; a name that would lie upon another name or thing is left out until there is room.
export function drawLabels(canvas, scale, nodes, { hot, isAside, paint, fits, from, to, links = [] }) {
  const size = lettersAt(scale, paint, (to.x - from.x) * scale > WIDE), gap = 2 / scale, taken = [];
  const isFree = (box) => !taken.some((one) => overlap(one, box));
  const few = nodes.length <= LABELS_UP_TO ? nodes.filter((node) => !node.value) : [];
  const isClear = (box, own, least = 0) => few.every((node) => node === own || node.size < least || !overlap(box, discOf(node)));
  const linesIn = (box) => links.reduce((sum, { source, target }) => sum + isCrossed(box, source, target), 0);
  const wanted = nodes.filter((node) => hot.has(node.id) || fits(node))
    .sort((one, other) => hot.has(other.id) - hot.has(one.id) || other.size - one.size);
  canvas.textAlign = "left";
  canvas.textBaseline = "top";
  for (const [rank, node] of wanted.entries()) {
    if (taken.length >= MOST_LABELS) break;
    // Around what is chosen there is a ring.
    const chosen = hot.has(node.id), radius = radiusOf(node) + (chosen ? 4 : 0);
    const label = labelOf(node);
    canvas.font = `${chosen ? 700 : node.size > HUB ? 620 : 500} ${size}px ${paint.font}`;
    const w = canvas.measureText(label).width, h = size * 1.15;
    // Above and below it may stand to one side, so that the edge does not cut it.
    const middle = Math.max(from.x, Math.min(node.x - w / 2, to.x - w));
    const places = [[middle, node.y + radius + gap], [middle, node.y - radius - gap - h], [node.x + radius + gap, node.y - h / 2], [node.x - radius - gap - w, node.y - h / 2]]
      .map(([x, y]) => ({ x, y, w, h }))
      .filter((one, at) => at === 0 || (one.x >= from.x && one.x + w <= to.x && one.y >= from.y));
    const free = places.filter((one) => isFree(one) && isClear(one, node)).map((one) => [linesIn(one), one]).sort(([one], [other]) => one - other);
    const box = free[0]?.[1]
      ?? (chosen || rank < FIRST ? places.find((one) => isFree(one) && isClear(one, node, node.size)) : null) ?? (chosen ? places[0] : null);
    if (!box) continue;
    taken.push(box);
    write(canvas, label, box, (node.value && !chosen) || isAside(node) ? paint.muted : paint.text, paint.ground, scale);
  }
  return taken;
}

// The room that a name takes on the canvas, in pixels.
export function roomOf(canvas, node, paint, isWide) {
  const size = lettersAt(1, paint, isWide);
  canvas.font = `600 ${size}px ${paint.font}`;
  return { w: canvas.measureText(labelOf(node)).width, h: size * 1.15 };
}

function write(canvas, words, place, colour, ground, scale) {
  canvas.lineWidth = 3.5 / scale;
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
  for (const link of links) {
    const { name } = link, w = canvas.measureText(name).width, middle = middleOf(link);
    const room = 4 / scale, box = { x: middle.x - w / 2 - room, y: middle.y - h / 2, w: w + 2 * room, h };
    if (taken.some((one) => overlap(one, box)) || nodes.some((node) => overlap(discOf(node), box))) continue;
    taken.push(box);
    write(canvas, name, { x: box.x + room, y: box.y }, paint.accent, paint.ground, scale);
  }
}

export const valueId = ({ value }) => `value ${value.value} ${value.datatype} ${value.unit ?? ""}`;

// The nodes and links of what is shown; the most connected where it is too much.
export function graphData(model, shown, before, withValues = true) {
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
      if (!withValues) continue;
      target = valueId(relation);
      if (!nodes.has(target)) nodes.set(target, place({ id: target, name: model.objectName(relation), hue: 11, size: 0.8, value: true }));
    } else if (!nodes.has(target)) continue;
    links.push({ source: relation.subject, target, relation, name: model.label(relation.predicate) });
  }
  bend(links);
  return { nodes, links, left };
}

// Two relations between the same two are two lines.
function bend(links) {
  const between = new Map();
  for (const link of links) {
    const ends = [link.source, link.target].sort().join("\u0000");
    between.set(ends, [...(between.get(ends) ?? []), link]);
  }
  for (const all of between.values()) {
    for (const [at, link] of all.entries()) {
      const curve = 0.22 * (at - (all.length - 1) / 2);
      link.curve = link.source < link.target ? curve : -curve;
    }
  }
}

// The middle of a line, which may be bent.
function middleOf({ source, target, curve }) {
  const dx = target.x - source.x, dy = target.y - source.y;
  return { x: source.x + dx / 2 + (dy * curve) / 2, y: source.y + dy / 2 - (dx * curve) / 2 };
}
