// What the pages of the console share: a tile with a figure, the choice of a time, the counts of that time, paging.
import { html, useMemo, useState } from "./html.js";
import { get, query } from "./api.js";
import { refine } from "./router.js";
import { Failure, useAsked } from "./components.js";
import { session } from "./store.js";

export const Stat = ({ label, value, hint, kind = "" }) => html`<div class=${`stat ${kind}`}>
  <dt>${label}</dt><dd>${value}</dd>${hint && html`<dd class="hint">${hint}</dd>`}</div>`;
export const Stats = ({ children, label }) => html`<dl class="stats" aria-label=${label}>${children}</dl>`;

const SPANS = [[24, "24 hours"], [168, "7 days"], [720, "30 days"]];
export const hoursOf = (given) => (SPANS.some(([hours]) => String(hours) === given) ? Number(given) : 168);

// The span of time that charts show; it is a part of the address.
export const Span = ({ hours }) => html`<div class="row spans" role="group" aria-label="Time shown">
  ${SPANS.map(([value, label]) => html`<button type="button" key=${value} class="small" aria-pressed=${hours === value}
    onClick=${() => refine({ hours: value })}>${label}</button>`)}</div>`;

export const useCounts = (hours) => useAsked(() => get(`/api/v1/counts${query({ hours })}`), [hours]);

// Pages of something, one below the other: { rows, more, loading, error, reload }. `load` gets the cursor of the next.
export function usePages(load, keys) {
  const [rest, setRest] = useState({ of: null, rows: [], next: null, busy: false, error: null });
  const first = useAsked(() => load(null), keys);
  const mine = rest.of === first.data ? rest : { rows: [], next: first.data?.next ?? null, busy: false, error: null };
  const rows = useMemo(() => [...(first.data?.rows ?? []), ...mine.rows], [first.data, mine.rows]);
  const more = mine.next && !mine.busy ? async () => {
    const of = first.data;
    setRest({ of, ...mine, busy: true });
    try {
      const page = await load(mine.next);
      setRest({ of, rows: [...mine.rows, ...page.rows], next: page.next, busy: false, error: null });
    } catch (error) {
      setRest({ of, ...mine, busy: false, error });
    }
  } : null;
  return { rows, more, busy: mine.busy, loading: first.loading, error: first.error || mine.error, reload: first.reload };
}

export const More = ({ pages }) => html`<${Failure} error=${pages.error} />
  ${(pages.more || pages.busy) && html`<p class="show-more"><button type="button" disabled=${pages.busy} onClick=${pages.more}>Show more</button></p>`}`;

export const mayChange = () => session.get().roles.includes("tenant-admin");

// A day of a date field as the service wants it; `end` gives the beginning of the day after, so that the day is in.
export function dayOf(text, { end = false } = {}) {
  if (!text) return "";
  const date = new Date(`${text}T00:00:00Z`);
  if (end) date.setUTCDate(date.getUTCDate() + 1);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

export const money = (cost) => (cost === null || cost === undefined ? "unknown" : Number(cost) === 0 ? "$0" : `$${Number(cost).toFixed(Number(cost) < 0.1 ? 4 : 2)}`);
export const short = (version) => (version || "").replace(/^sha256[:-]/, "").slice(0, 12);
