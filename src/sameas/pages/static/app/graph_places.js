// Where the entities of a small graph lie: distances on the canvas are like those in the graph, names have room, and what
// was there stays near its place while more comes. Nothing here draws, reads a clock or takes a chance: the same graph in
// the same frame lies the same way.

// Graphs up to this size are placed as a whole before they are shown; larger ones find their places by forces.
export const PLACED_UP_TO = 300;

// How many times the distances, and after them the names that lie upon each other, are mended.
const ROUNDS = 120;
const PUSHES = 120;
// Pixels of one step in the graph, and how far the picture may be pulled to fill its frame.
const STEP = 120;
const PULL = 1.7;
// The part of a frame that names may fill; beyond it the least connected have room for their discs alone.
const FILLED = 0.3;
const FILLED_BY_ROWS = 0.8;
const GAP = 7;
// What hangs together with so few at most stands in a row with the others of its kind.
const FEW = 3;
const BETWEEN = 34;
// How many times its height a row of a small graph has to itself.
const AIRY = 2;

// `nodes` are { id, r, w, h, x?, y? }: a disc of radius r with a name of w by h pixels below it; those with x and y have
// been placed before. `links` are { source, target } with ids. The middle of the frame is 0, 0.
export function placeGraph(nodes, links, frame) {
  const graph = neighboursOf(nodes, links);
  const parts = partsOf(nodes, graph);
  const boxes = boxesOf(nodes, graph, frame);
  const alone = parts.filter((part) => part.length <= FEW).map((part) => inRow(part, graph));
  const together = parts.filter((part) => part.length > FEW).sort((one, other) => other.length - one.length);
  const [above, below] = divide(frame, boxes, together.flat(), alone);
  for (const [part, cell] of cells(together, boxes, above)) {
    arrange(part, graph);
    fill(part, boxes, cell);
  }
  row(alone, boxes, below);
  const segments = links.map(({ source, target }) => [graph.node.get(source), graph.node.get(target)]).filter(([from, to]) => from && to && from !== to);
  separate(nodes, boxes, segments);
  stretch(together.flat(), boxes, above);
}

function neighboursOf(nodes, links) {
  const node = new Map(nodes.map((one) => [one.id, one])), near = new Map(nodes.map((one) => [one.id, new Set()]));
  for (const { source, target } of links) {
    if (source === target || !node.has(source) || !node.has(target)) continue;
    near.get(source).add(target);
    near.get(target).add(source);
  }
  return { node, near };
}

function partsOf(nodes, { node, near }) {
  const seen = new Set(), parts = [];
  for (const { id } of nodes) {
    if (seen.has(id)) continue;
    const part = [], left = [id];
    seen.add(id);
    while (left.length) {
      const one = left.pop();
      part.push(node.get(one));
      for (const other of near.get(one)) if (!seen.has(other)) { seen.add(other); left.push(other); }
    }
    parts.push(part);
  }
  return parts;
}

// The room of each: its disc with its name below, or, in a crowd, the disc alone.
function boxesOf(nodes, { near }, frame) {
  const boxes = new Map();
  const room = frame.width * frame.height, left = { tied: room * FILLED, alone: room * FILLED_BY_ROWS };
  const ranked = [...nodes].sort((one, other) => near.get(other.id).size - near.get(one.id).size);
  for (const { id, r, w, h } of ranked) {
    const named = { w: Math.max(2 * r, w) + GAP, top: r + GAP / 2, bottom: r + (w ? h + GAP : 0) };
    const kind = near.get(id).size ? "tied" : "alone";
    left[kind] -= named.w * (named.top + named.bottom);
    boxes.set(id, left[kind] > 0 || !w ? named : { w: 2 * r + GAP, top: r + GAP / 2, bottom: r + GAP / 2 });
  }
  return boxes;
}

const sizeOf = (list, boxes) => list.reduce((sum, { id }) => sum + boxes.get(id).w * (boxes.get(id).top + boxes.get(id).bottom), 0);

// Of three the one in the middle is that which the others hang on.
function inRow(part, { near }) {
  if (part.length < 3) return part;
  const [middle, ...ends] = [...part].sort((one, other) => near.get(other.id).size - near.get(one.id).size);
  return [ends[0], middle, ends[1]];
}

const widthOf = (part, boxes) => part.reduce((sum, { id }) => sum + boxes.get(id).w, 0) + BETWEEN * (part.length - 1) + GAP;

// What is connected lies above, what is alone in rows below it.
function divide(frame, boxes, together, alone) {
  const { width, height } = frame;
  const whole = { x: -width / 2, y: -height / 2, width, height };
  if (!alone.length || !together.length) return [whole, whole];
  const rows = Math.ceil(alone.reduce((sum, part) => sum + widthOf(part, boxes), 0) / width);
  const tall = tallest(alone, boxes);
  const below = Math.min(rows * (tall + GAP), height * 0.5);
  return [{ ...whole, height: height - below }, { ...whole, y: whole.y + height - below, height: below }];
}

// Divides a frame among parts by the room that they need.
function cells(parts, boxes, cell) {
  if (!parts.length) return [];
  if (parts.length === 1) return [[parts[0], cell]];
  const sizes = parts.map((part) => sizeOf(part, boxes)), all = sizes.reduce((sum, one) => sum + one, 0);
  let at = 1, share = sizes[0];
  while (at < parts.length - 1 && share + sizes[at] <= all / 2) share += sizes[at++];
  const isWide = cell.width > cell.height, side = (isWide ? cell.width : cell.height) * (share / all);
  const first = isWide ? { ...cell, width: side } : { ...cell, height: side };
  const second = isWide ? { ...cell, x: cell.x + side, width: cell.width - side } : { ...cell, y: cell.y + side, height: cell.height - side };
  return [...cells(parts.slice(0, at), boxes, first), ...cells(parts.slice(at), boxes, second)];
}

// Lays a part out so that the distances on the canvas are like the shortest ways in the graph. Those between things with
// many others are longer, so that what hangs on each has room around it.
function arrange(part, { near }) {
  const size = part.length, index = new Map(part.map((one, at) => [one.id, at]));
  const links = part.map(({ id }) => [...near.get(id)].map((other) => [index.get(other), lengthOf(near.get(id), near.get(other))]));
  const ways = part.map((_, from) => shortest(links, from));
  const known = part.filter((one) => one.x !== undefined);
  const spots = known.length * 2 >= size ? grown(part, links) : spread(ways);
  const before = spots.map(([x, y]) => [x, y]);
  for (let round = 0; round < ROUNDS; round += 1) relax(spots, ways);
  const isOld = part.map((one) => one.x !== undefined);
  if (known.length > 1) turnBack(spots, before, isOld);
  for (const [at, [x, y]] of spots.entries()) Object.assign(part[at], { x, y });
}

function lengthOf(mine, theirs) {
  const shared = [...mine].filter((one) => theirs.has(one)).length;
  return 1 + 0.28 * Math.sqrt(Math.max(0, mine.size + theirs.size - 2 * shared - 2));
}

// Dijkstra's ways from one to all; the graph is small.
function shortest(links, from) {
  const ways = links.map(() => Infinity), left = new Set(links.keys());
  ways[from] = 0;
  while (left.size) {
    let next = -1;
    for (const at of left) if (next < 0 || ways[at] < ways[next]) next = at;
    left.delete(next);
    for (const [other, length] of links[next]) ways[other] = Math.min(ways[other], ways[next] + length);
  }
  return ways;
}

// The two directions in which the distances differ most: a start without crossings that a start by chance would leave.
function spread(ways) {
  const size = ways.length, squares = ways.map((row) => row.map((one) => one * one));
  const means = squares.map((row) => row.reduce((sum, one) => sum + one, 0) / size);
  const mean = means.reduce((sum, one) => sum + one, 0) / size;
  const centred = squares.map((row, at) => row.map((one, other) => -0.5 * (one - means[at] - means[other] + mean)));
  const axes = [];
  for (const turn of [0, 1]) {
    let axis = ways.map((_, at) => Math.sin(1 + at * (2.1 + turn)));
    for (let round = 0; round < 60; round += 1) {
      for (const other of axes) {
        const along = dot(axis, other);
        axis = axis.map((one, at) => one - along * other[at]);
      }
      axis = centred.map((row) => dot(row, axis));
      const length = Math.sqrt(dot(axis, axis)) || 1;
      axis = axis.map((one) => one / length);
    }
    axes.push(axis);
  }
  const reach = axes.map((axis) => Math.sqrt(Math.max(0, dot(centred.map((row) => dot(row, axis)), axis))));
  // A little apart where the two directions cannot tell things apart, such as the leaves of one branch.
  return ways.map((_, at) => [axes[0][at] * reach[0] + 0.05 * Math.cos(at * 2.4), axes[1][at] * reach[1] + 0.05 * Math.sin(at * 2.4)]);
}

const dot = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);

// From where things are; what is new begins beside its neighbours, outwards.
function grown(part, links) {
  const known = part.filter((one) => one.x !== undefined);
  const middle = { x: known.reduce((sum, one) => sum + one.x, 0) / known.length, y: known.reduce((sum, one) => sum + one.y, 0) / known.length };
  const spots = part.map((one) => (one.x === undefined ? null : [(one.x - middle.x) / STEP, (one.y - middle.y) / STEP]));
  let open = part.map((_, at) => at).filter((at) => !spots[at]);
  while (open.length) {
    const placed = open.filter((at) => links[at].some(([other]) => spots[other]));
    for (const at of placed) {
      const [x, y] = spots[links[at].find(([other]) => spots[other])[0]];
      const away = Math.atan2(y, x) + Math.sin(at * 2.4) * 1.3;
      spots[at] = [x + 0.8 * Math.cos(away), y + 0.8 * Math.sin(away)];
    }
    open = open.filter((at) => !spots[at]);
  }
  return spots;
}

// Moves each to where its distances to all others are best; the near ones count most.
function relax(spots, ways) {
  for (const [at, spot] of spots.entries()) {
    let x = 0, y = 0, weight = 0;
    for (const [other, [otherX, otherY]] of spots.entries()) {
      if (other === at) continue;
      const wanted = ways[at][other], counts = 1 / (wanted * wanted);
      const dx = spot[0] - otherX, dy = spot[1] - otherY, apart = Math.hypot(dx, dy) || 1e-6;
      x += counts * (otherX + (wanted * dx) / apart);
      y += counts * (otherY + (wanted * dy) / apart);
      weight += counts;
    }
    spot[0] = x / weight;
    spot[1] = y / weight;
  }
}

// Turns what was moved back to how it lay before, as well as a turn can.
function turnBack(spots, before, isOld) {
  let cos = 0, sin = 0;
  for (const [at, [x, y]] of spots.entries()) {
    if (!isOld[at]) continue;
    cos += x * before[at][0] + y * before[at][1];
    sin += x * before[at][1] - y * before[at][0];
  }
  const angle = Math.atan2(sin, cos);
  for (const spot of spots) {
    const [x, y] = spot;
    spot[0] = x * Math.cos(angle) - y * Math.sin(angle);
    spot[1] = x * Math.sin(angle) + y * Math.cos(angle);
  }
}

const bounds = (list) => {
  const xs = list.map((one) => one.x), ys = list.map((one) => one.y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { x: (left + right) / 2, y: (top + bottom) / 2, width: Math.max(right - left, 1e-3), height: Math.max(bottom - top, 1e-3) };
};

// Puts a part into its cell, a little wider or higher than it is where the cell is.
function fill(list, boxes, cell) {
  const widest = Math.max(...list.map(({ id }) => boxes.get(id).w)), { x, y, width, height } = bounds(list);
  let across = Math.min(STEP * 1.5, Math.max(cell.width - widest, 40) / width), down = Math.min(STEP * 1.2, Math.max(cell.height - 50, 40) / height);
  across = Math.min(across, down * PULL);
  down = Math.min(down, across * PULL);
  for (const one of list) {
    one.x = cell.x + cell.width / 2 + (one.x - x) * across;
    one.y = cell.y + cell.height / 2 + (one.y - y) * down;
  }
}

// Names that made room for themselves may have given the whole another shape than its frame has: what is too narrow or too
// low for it is pulled, which lays nothing upon anything.
function stretch(list, boxes, cell) {
  if (!list.length) return;
  const width = Math.max(...list.map(({ id, x }) => x + boxes.get(id).w / 2)) - Math.min(...list.map(({ id, x }) => x - boxes.get(id).w / 2));
  const height = Math.max(...list.map(({ id, y }) => y + boxes.get(id).bottom)) - Math.min(...list.map(({ id, y }) => y - boxes.get(id).top));
  const large = Math.max(width / cell.width, height / cell.height), middle = bounds(list);
  const pull = (room, taken) => (large > 1 ? Math.min(PULL, (room * large) / taken) : 1);
  for (const one of list) {
    one.x = cell.x + cell.width / 2 + (one.x - middle.x) * pull(cell.width, width);
    one.y = cell.y + cell.height / 2 + (one.y - middle.y) * pull(cell.height, height);
  }
}

const tallest = (parts, boxes) => Math.max(...parts.flat().map(({ id }) => boxes.get(id).top + boxes.get(id).bottom));

// What hangs together with nothing, or with one or two, stands in rows, in the order in which it came.
function row(parts, boxes, cell) {
  if (!parts.length) return;
  const rows = [[]], tall = tallest(parts, boxes) + GAP, all = parts.reduce((sum, part) => sum + widthOf(part, boxes), 0);
  // Rows as long as they make the whole as wide for its height as the frame is.
  const most = Math.min(cell.width, Math.max(...parts.map((part) => widthOf(part, boxes)), Math.sqrt((all * tall * AIRY * cell.width) / cell.height)));
  let used = 0;
  for (const part of parts) {
    const wide = widthOf(part, boxes);
    if (used + wide > most && rows.at(-1).length) {
      rows.push([]);
      used = 0;
    }
    rows.at(-1).push(part);
    used += wide;
  }
  const step = Math.max(tall, Math.min(tall * AIRY, cell.height / rows.length));
  for (const [at, line] of rows.entries()) {
    const taken = line.reduce((sum, part) => sum + widthOf(part, boxes), 0);
    const free = Math.min(40, Math.max(0, cell.width - taken) / line.length);
    let x = cell.x + (cell.width - taken - free * line.length) / 2;
    for (const part of line) {
      x += free / 2;
      for (const node of part) {
        const { w } = boxes.get(node.id);
        Object.assign(node, { x: x + w / 2, y: cell.y + cell.height / 2 + (at - (rows.length - 1) / 2) * step });
        x += w + BETWEEN;
      }
      x += free / 2 + GAP - BETWEEN;
    }
  }
}

// Moves apart what lies upon each other, and off the lines that belong to others.
function separate(nodes, boxes, segments) {
  for (let round = 0; round < PUSHES; round += 1) {
    let moved = round < PUSHES / 2 ? offLines(nodes, segments) : 0;
    for (const [at, one] of nodes.entries()) {
      const mine = boxes.get(one.id);
      for (const other of nodes.slice(at + 1)) {
        const theirs = boxes.get(other.id);
        const dx = other.x - one.x;
        const overX = (mine.w + theirs.w) / 2 - Math.abs(dx);
        if (overX <= 0) continue;
        const dy = other.y + (theirs.bottom - theirs.top) / 2 - one.y - (mine.bottom - mine.top) / 2;
        const overY = (mine.top + mine.bottom + theirs.top + theirs.bottom) / 2 - Math.abs(dy);
        if (overY <= 0) continue;
        moved += 1;
        // The shorter way out, which is mostly up or down, because names are wide and low.
        if (overX < overY) {
          const step = (overX / 2 + 0.1) * (dx < 0 ? -1 : 1);
          one.x -= step;
          other.x += step;
        } else {
          const step = (overY / 2 + 0.1) * (dy < 0 ? -1 : 1);
          one.y -= step;
          other.y += step;
        }
      }
    }
    if (!moved) return;
  }
}

function offLines(nodes, segments) {
  let moved = 0;
  for (const node of nodes) {
    for (const [from, to] of segments) {
      if (node === from || node === to) continue;
      const dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy || 1;
      const along = ((node.x - from.x) * dx + (node.y - from.y) * dy) / square;
      if (along < 0.04 || along > 0.96) continue;
      const awayX = node.x - from.x - along * dx, awayY = node.y - from.y - along * dy;
      const apart = Math.hypot(awayX, awayY), wanted = node.r + GAP;
      if (apart >= wanted) continue;
      moved += 1;
      const length = Math.sqrt(square), step = (wanted - apart) * 0.4;
      // On the very line, either side will do.
      const [x, y] = apart > 0.01 ? [awayX / apart, awayY / apart] : [-dy / length, dx / length];
      node.x += x * step;
      node.y += y * step;
    }
  }
  return moved;
}
