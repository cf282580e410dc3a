// The text with its mentions. It is cut into blocks; only those near the window have their marks, so that a book
// scrolls like a page. Overlaps: the innermost thing gives the ground, each one around it a line below.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";

const BLOCK = 1600;

// Cuts at line ends, or else at blanks, so that no mention is likely to be cut; one that is stands in both blocks.
export function blocksOf(text) {
  const blocks = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(text.length, start + BLOCK);
    if (end < text.length) {
      const line = text.indexOf("\n", end);
      if (line >= 0 && line - end < BLOCK) end = line + 1;
      else {
        const blank = text.lastIndexOf(" ", end);
        if (blank > start) end = blank + 1;
        else if (text.charCodeAt(end) >= 0xdc00 && text.charCodeAt(end) < 0xe000) end += 1;
      }
    }
    blocks.push({ start, end });
    start = end;
  }
  return blocks;
}

// Stretches of [start, end) with the marks that cover each, outermost first.
export function segmentsOf(start, end, marks) {
  const edges = new Set([start, end]);
  for (const mark of marks) {
    if (mark.from > start && mark.from < end) edges.add(mark.from);
    if (mark.to > start && mark.to < end) edges.add(mark.to);
  }
  const cuts = [...edges].sort((one, other) => one - other);
  return cuts.slice(0, -1).map((from, index) => ({
    from,
    to: cuts[index + 1],
    marks: marks.filter((mark) => mark.from <= from && mark.to >= cuts[index + 1]),
  }));
}

function Block({ text, block, marks, hot, root }) {
  const place = useRef(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watcher = new IntersectionObserver(([entry]) => setNear(entry.isIntersecting), { root: root.current, rootMargin: "900px 0px" });
    watcher.observe(place.current);
    return () => watcher.disconnect();
  }, []);
  const inner = near || marks.length === 0
    ? segmentsOf(block.start, block.end, near ? marks : []).map((segment) => {
        const shown = text.slice(segment.from, segment.to);
        if (!segment.marks.length) return shown;
        const things = segment.marks.filter((mark) => mark.mention);
        const evidence = segment.marks.some((mark) => mark.evidence);
        const chosen = segment.marks.some((mark) => mark.mention && hot.has(mark.mention.entity.id));
        if (!things.length) return html`<span class="evidence">${shown}</span>`;
        const inmost = things[things.length - 1];
        const around = things.slice(0, -1).slice(-3);
        const lines = around.map((mark, index) => `inset 0 -${(index + 1) * 2}px 0 var(--hue-strong-${mark.hue})`);
        return html`<mark class=${`hue-${inmost.hue}${evidence ? " in-evidence" : ""}${chosen ? " chosen" : ""}${things.length > 1 ? " overlap" : ""}`}
          data-mentions=${things.map((mark) => mark.number).join(" ")} data-entities=${things.map((mark) => mark.mention.entity.id).join(" ")}
          style=${lines.length ? { boxShadow: lines.join(", ") } : undefined}>${shown}</mark>`;
      })
    : text.slice(block.start, block.end);
  return html`<div class="block" ref=${place} dir="auto" data-start=${block.start}>${inner}</div>`;
}

// `hot` are the ids of the things to stress, `evidence` the stretches to underlay, `goal` the place to scroll to.
export function TextPane({ model, shown, hot, evidence, goal, onMention, onSelectText }) {
  const root = useRef(null);
  const text = model.text ?? "";
  const blocks = useMemo(() => blocksOf(text), [text]);
  const marks = useMemo(() => {
    const visible = new Set(shown.entities.map((entity) => entity.id));
    return model.mentions
      .filter((mention) => visible.has(mention.entity.id))
      .map((mention, number) => ({
        from: model.offsets.toUnits(mention.start),
        to: model.offsets.toUnits(mention.end),
        hue: model.hue(mention.entity),
        mention,
        number,
      }));
  }, [model, shown]);
  const underlaid = useMemo(
    () => evidence.map((one) => ({ from: model.offsets.toUnits(one.start), to: model.offsets.toUnits(one.end), evidence: true })),
    [model, evidence],
  );
  const perBlock = useMemo(() => {
    const lists = blocks.map(() => []);
    let first = 0;
    for (const mark of marks) {
      while (first < blocks.length && blocks[first].end <= mark.from) first += 1;
      for (let at = first; at < blocks.length && blocks[at].start < mark.to; at += 1) lists[at].push(mark);
    }
    for (const mark of underlaid) {
      for (const [at, block] of blocks.entries()) if (block.start < mark.to && block.end > mark.from) lists[at] = [mark, ...lists[at]];
    }
    return lists;
  }, [blocks, marks, underlaid]);
  useLayoutEffect(() => {
    if (!goal || !root.current) return;
    const unit = model.offsets.toUnits(goal.start);
    const at = blocks.findIndex((block) => block.end > unit);
    const block = root.current.querySelectorAll(".block")[at];
    if (!block) return;
    // The marks of a block far away come with the next frames; then the very words can be found.
    const toWords = (tries) => {
      const range = rangeAt(block, unit - blocks[at].start);
      const box = range?.getBoundingClientRect();
      const frame = root.current?.getBoundingClientRect();
      if (!frame || !box) return;
      const scrolls = root.current.scrollHeight > root.current.clientHeight + 4;
      if (scrolls) root.current.scrollTop += box.top - frame.top - frame.height / 3;
      else scrollBy(0, box.top - innerHeight / 3);
      if (tries > 0) requestAnimationFrame(() => toWords(tries - 1));
    };
    toWords(2);
  }, [goal, text]);
  const last = useRef({ where: "", turn: 0 });
  const click = (event) => {
    if (String(getSelection()).length) return;
    const mark = event.target.closest?.("mark");
    if (!mark) return;
    const numbers = mark.dataset.mentions.split(" ").map(Number).reverse();
    // A second click at the same words goes one thing outwards.
    last.current = last.current.where === mark.dataset.mentions ? { where: mark.dataset.mentions, turn: last.current.turn + 1 } : { where: mark.dataset.mentions, turn: 0 };
    onMention(marks[numbers[last.current.turn % numbers.length]].mention);
  };
  const keyed = useRef(-1);
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !marks.length || event.target !== root.current) return;
    event.preventDefault();
    keyed.current = (keyed.current + step + marks.length) % marks.length;
    onMention(marks[keyed.current].mention);
  };
  const select = () => {
    if (!onSelectText) return;
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed || !root.current.contains(selection.anchorNode)) return;
    const range = selection.getRangeAt(0);
    const from = unitAt(range.startContainer, range.startOffset), to = unitAt(range.endContainer, range.endOffset);
    if (from === null || to === null || from >= to) return;
    onSelectText({ start: model.offsets.toPoints(from), end: model.offsets.toPoints(to), text: text.slice(from, to) });
  };
  if (model.text === null) return html`<div class="text-pane empty"><p>The text of this run is not kept here. Its relations still show the words that support them.</p></div>`;
  return html`<div class="text-pane" ref=${root} tabindex="0" role="document" aria-label="Text with mentions; arrow keys go from mention to mention"
    onClick=${click} onKeyDown=${keys} onMouseUp=${select} onKeyUp=${(event) => event.shiftKey && select()}>
    <div class="reading">${blocks.map((block, index) => html`<${Block} key=${block.start} text=${text} block=${block} marks=${perBlock[index]} hot=${hot} root=${root} />`)}</div>
  </div>`;
}

// A range of one character at an offset inside an element.
function rangeAt(element, offset) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let left = offset, node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left < node.length) {
      const range = document.createRange();
      range.setStart(node, left);
      range.setEnd(node, left + 1);
      return range;
    }
    left -= node.length;
  }
  return null;
}

// The offset in the whole text of a place that a selection names.
function unitAt(node, offset) {
  const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
  const block = element?.closest(".block");
  if (!block) return null;
  const before = document.createRange();
  before.setStart(block, 0);
  before.setEnd(node, offset);
  return Number(block.dataset.start) + before.toString().length;
}
