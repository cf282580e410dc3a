// Where the entities of a small graph lie: distances on the canvas are like those in the graph, names have room, and what
// was there stays near its place while more comes. Nothing here draws, reads a clock or takes a chance: the same graph in
// the same frame lies the same way.

// Graphs up to this size are placed as a whole before they are shown; larger ones find their places by forces.
export const PLACED_UP_TO = 300;

// How many times at most the distances, and after them the names that lie upon each other, are mended; what moves by less
// of a step is still.
const ROUNDS = 120;
const PUSHES = 60;
const TURNS = 40;
const STILL = 0.004;
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
  const index = new Map(part.map((one, at) => [one.id, at]));
  const links = part.map(({ id }) => [...near.get(id)].map((other) => [index.get(other), lengthOf(near.get(id), near.get(other))]));
  const ways = shortest(links);
  const isOld = part.map((one) => one.x !== undefined), known = isOld.filter(Boolean).length;
  const spots = known * 2 >= part.length ? grown(part, links) : spread(ways, part.length);
  const before = { x: spots.x.slice(), y: spots.y.slice() };
  relax(spots, ways);
  if (known > 1) turnBack(spots, before, isOld);
  for (const [at, one] of part.entries()) Object.assign(one, { x: spots.x[at], y: spots.y[at] });
}

function lengthOf(mine, theirs) {
  const shared = [...mine].filter((one) => theirs.has(one)).length;
  return 1 + 0.28 * Math.sqrt(Math.max(0, mine.size + theirs.size - 2 * shared - 2));
}

// Dijkstra's ways from each to all, one row after the other.
function shortest(links) {
  const size = links.length, all = new Float64Array(size * size).fill(Infinity), done = new Uint8Array(size);
  for (let from = 0; from < size; from += 1) {
    const ways = all.subarray(from * size, (from + 1) * size);
    ways[from] = 0;
    done.fill(0);
    for (let turn = 0; turn < size; turn += 1) {
      let next = -1;
      for (let at = 0; at < size; at += 1) if (!done[at] && (next < 0 || ways[at] < ways[next])) next = at;
      done[next] = 1;
      for (const [other, length] of links[next]) if (ways[next] + length < ways[other]) ways[other] = ways[next] + length;
    }
  }
  return all;
}

// The two directions in which the distances differ most: a start without crossings that a start by chance would leave.
function spread(ways, size) {
  const centred = ways.map((one) => one * one), means = new Float64Array(size);
  for (let at = 0; at < size * size; at += 1) means[Math.floor(at / size)] += centred[at] / size;
  const mean = means.reduce((sum, one) => sum + one, 0) / size;
  for (let at = 0; at < size * size; at += 1) centred[at] = -0.5 * (centred[at] - means[Math.floor(at / size)] - means[at % size] + mean);
  const times = (axis) => axis.map((_, row) => {
    let sum = 0;
    for (let at = 0; at < size; at += 1) sum += centred[row * size + at] * axis[at];
    return sum;
  });
  const dot = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);
  const axes = [];
  for (const turn of [0, 1]) {
    let axis = Float64Array.from({ length: size }, (_, at) => Math.sin(1 + at * (2.1 + turn)));
    for (let round = 0; round < TURNS; round += 1) {
      for (const other of axes) {
        const along = dot(axis, other);
        axis = axis.map((one, at) => one - along * other[at]);
      }
      axis = times(axis);
      const length = Math.sqrt(dot(axis, axis)) || 1;
      axis = axis.map((one) => one / length);
    }
    axes.push(axis);
  }
  const [across, down] = axes.map((axis) => {
    const reach = Math.sqrt(Math.max(0, dot(times(axis), axis)));
    return axis.map((one) => one * reach);
  });
  // A little apart where the two directions cannot tell things apart, such as the leaves of one branch.
  return { x: across.map((one, at) => one + 0.05 * Math.cos(at * 2.4)), y: down.map((one, at) => one + 0.05 * Math.sin(at * 2.4)) };
}

// From where things are; what is new begins beside its neighbours, outwards.
function grown(part, links) {
  const known = part.filter((one) => one.x !== undefined), middle = { x: 0, y: 0 };
  for (const one of known) {
    middle.x += one.x / known.length;
    middle.y += one.y / known.length;
  }
  const x = Float64Array.from(part, (one) => (one.x - middle.x) / STEP), y = Float64Array.from(part, (one) => (one.y - middle.y) / STEP);
  const isPlaced = (at) => !Number.isNaN(x[at]);
  let open = part.map((_, at) => at).filter((at) => !isPlaced(at));
  while (open.length) {
    const ready = open.filter((at) => links[at].some(([other]) => isPlaced(other)));
    for (const at of ready) {
      const [beside] = links[at].find(([other]) => isPlaced(other));
      const away = Math.atan2(y[beside], x[beside]) + Math.sin(at * 2.4) * 1.3;
      x[at] = x[beside] + 0.8 * Math.cos(away);
      y[at] = y[beside] + 0.8 * Math.sin(away);
    }
    open = open.filter((at) => !isPlaced(at));
  }
  return { x, y };
}

// Moves each to where its distances to all others are best, the near ones counting most, until next to nothing moves.
function relax({ x, y }, ways) {
  const size = x.length;
  for (let round = 0; round < ROUNDS; round += 1) {
    let moved = 0;
    for (let at = 0; at < size; at += 1) {
      let sumX = 0, sumY = 0, weight = 0;
      for (let other = 0; other < size; other += 1) {
        if (other === at) continue;
        const wanted = ways[at * size + other], counts = 1 / (wanted * wanted), dx = x[at] - x[other], dy = y[at] - y[other];
        const pull = wanted / (Math.sqrt(dx * dx + dy * dy) || 1e-6);
        sumX += counts * (x[other] + pull * dx);
        sumY += counts * (y[other] + pull * dy);
        weight += counts;
      }
      moved = Math.max(moved, Math.abs(sumX / weight - x[at]), Math.abs(sumY / weight - y[at]));
      x[at] = sumX / weight;
      y[at] = sumY / weight;
    }
    if (moved < STILL) return;
  }
}

// Turns what was moved back to how it lay before, as well as a turn can.
function turnBack({ x, y }, before, isOld) {
  let cos = 0, sin = 0;
  for (const [at, old] of isOld.entries()) {
    if (!old) continue;
    cos += x[at] * before.x[at] + y[at] * before.y[at];
    sin += x[at] * before.y[at] - y[at] * before.x[at];
  }
  const angle = Math.atan2(sin, cos), c = Math.cos(angle), s = Math.sin(angle);
  for (let at = 0; at < x.length; at += 1) [x[at], y[at]] = [x[at] * c - y[at] * s, x[at] * s + y[at] * c];
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
  const rooms = nodes.map(({ id }) => boxes.get(id));
  for (let round = 0; round < PUSHES; round += 1) {
    let moved = round < PUSHES / 2 ? offLines(nodes, segments) : 0;
    for (let at = 0; at < nodes.length; at += 1) {
      const one = nodes[at], mine = rooms[at];
      for (let next = at + 1; next < nodes.length; next += 1) {
        const other = nodes[next], theirs = rooms[next];
        const dx = other.x - one.x, overX = (mine.w + theirs.w) / 2 - Math.abs(dx);
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
    const wanted = node.r + GAP;
    for (const [from, to] of segments) {
      // Most lines are nowhere near.
      if (Math.min(from.x, to.x) - wanted > node.x || Math.max(from.x, to.x) + wanted < node.x) continue;
      if (Math.min(from.y, to.y) - wanted > node.y || Math.max(from.y, to.y) + wanted < node.y) continue;
      if (node === from || node === to) continue;
      const dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy || 1;
      const along = ((node.x - from.x) * dx + (node.y - from.y) * dy) / square;
      if (along < 0.04 || along > 0.96) continue;
      const awayX = node.x - from.x - along * dx, awayY = node.y - from.y - along * dy;
      const apart = Math.sqrt(awayX * awayX + awayY * awayY);
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
