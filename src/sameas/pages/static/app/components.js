// What pages are put together from: buttons aside, everything that more than one page shows.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { createStore, useStore } from "./store.js";

// A word in a pill. `kind`: good, bad, warn, info or plain.
export const Badge = ({ kind = "plain", children, title }) =>
  html`<span class=${`badge badge-${kind}`} title=${title}>${children}</span>`;

const STATUS = { complete: "good", running: "info", pending: "info", partial: "warn", failed: "bad", grounded: "good", unverified: "warn" };
export const Status = ({ status }) => html`<${Badge} kind=${STATUS[status] || "plain"}>${status}<//>`;

// A table with a caption for those who cannot see it. Columns: { key, label, render?, number? }.
export function Table({ caption, columns, rows, rowKey = (row, index) => index, empty = "Nothing here yet." }) {
  if (!rows.length) return html`<${Empty}>${empty}<//>`;
  return html`<div class="table-frame" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="hidden">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.number ? "number" : ""}>${column.label}</th>`)}</tr></thead>
      <tbody>
        ${rows.map((row, index) => html`<tr key=${rowKey(row, index)}>
          ${columns.map((column) => html`<td class=${column.number ? "number" : ""}>${column.render ? column.render(row) : row[column.key]}</td>`)}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}

export const Empty = ({ title, children, action }) => html`<div class="empty">
  ${title && html`<h2>${title}</h2>`}<p>${children}</p>${action}
</div>`;

// A refusal, in the service's own words.
export const Notice = ({ kind = "info", title, children }) => html`<div class=${`notice notice-${kind}`} role=${kind === "bad" ? "alert" : "status"}>
  ${title && html`<strong>${title}</strong>`}<div>${children}</div>
</div>`;
// The service writes its reasons as parts of sentences. A name or an address keeps its letters.
const sentence = (text) => (/^[a-z]+[ ,;:]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text);
export const Failure = ({ error }) => error && html`<${Notice} kind="bad" title="That did not work">${sentence(error.message)}<//>`;

// A page that cannot be shown.
export const Unavailable = ({ title, error, children }) => html`<div class="page stack"><h1>${title}</h1><${Failure} error=${error} />
  <p>${children ?? html`<a href="#/">Back to Studio</a>`}</p></div>`;

export const Loading = ({ what = "Loading" }) => html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${what}…</p>`;

// A modal; the browser itself keeps the focus inside and gives it back.
export function Dialog({ title, onClose, children, actions, wide = false }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const opened = box.current;
    if (!opened.open) opened.showModal();
    // What it was opened for, and not the way out, which comes first.
    opened.querySelector(".dialog-body :is(input, select, textarea, button)")?.focus();
    return () => opened.close();
  }, []);
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-label=${title}
    onClose=${onClose} onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <div class="dialog-head"><h2>${title}</h2><button type="button" class="quiet icon" aria-label="Close" onClick=${onClose}>×</button></div>
    <div class="dialog-body">${children}</div>
    ${actions && html`<div class="dialog-actions">${actions}</div>`}
  </dialog>`;
}

// Tabs by the pattern of WAI-ARIA: arrows move, and the panel belongs to its tab. Tabs: { id, label, count? }.
export function Tabs({ label, tabs, current, onChange, children, name = "tabs" }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.id === current);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    onChange(next.id);
    document.getElementById(`${name}-${next.id}`)?.focus();
  };
  return html`<div class="tabs">
    <div role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map((tab) => html`<button type="button" role="tab" key=${tab.id} id=${`${name}-${tab.id}`}
        aria-selected=${tab.id === current} aria-controls=${`${name}-panel`} tabindex=${tab.id === current ? 0 : -1}
        onClick=${() => onChange(tab.id)}>${tab.label}${tab.count !== undefined && html`<span class="count">${tab.count}</span>`}</button>`)}
    </div>
    <div role="tabpanel" id=${`${name}-panel`} aria-labelledby=${`${name}-${current}`} tabindex="0">${children}</div>
  </div>`;
}

// What can be downloaded: [id, label, suffix].
export const Formats = ({ formats, isBusy, onChoose }) => html`<div class="downloads">${formats.map(([format, label, suffix]) =>
  html`<button type="button" key=${format} disabled=${isBusy} onClick=${() => onChoose(format, suffix)}>
    <span>${label}</span><span class="muted mono small">.${suffix}</span></button>`)}</div>`;

export const Field = ({ label, hint, children }) => html`<label class="field"><span class="label">${label}</span>${children}${hint && html`<span class="hint">${hint}</span>`}</label>`;

// Something to read later: shortened, whole in its title, copied by a click.
export const Key = ({ value, length = 12 }) => {
  const short = value.replace(/^sha256-/, "").slice(0, length);
  return html`<button type="button" class="key" title=${`Copy ${value}`} onClick=${() => copy(value, "Copied.")}>${short}</button>`;
};

export async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    toast(done);
  } catch {
    // Browsers lend the clipboard to safe origins only: then it is there to be copied by hand.
    toast(text, { seconds: 20 });
  }
}

const toasts = createStore([]);
let told = 0;

// A word at the foot of the page. `action`: { label, run }.
export function toast(message, { kind = "info", action = null, seconds = 6 } = {}) {
  const id = ++told;
  toasts.set((now) => [...now.slice(-3), { id, message, kind, action }]);
  setTimeout(() => toasts.set((now) => now.filter((one) => one.id !== id)), seconds * 1000);
}
export const complain = (error) => toast(sentence(error.message), { kind: "bad", seconds: 12 });

export function Toasts() {
  const now = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${now.map((one) => html`<div key=${one.id} class=${`toast toast-${one.kind}`}><span>${one.message}</span>
      ${one.action && html`<button type="button" class="quiet" onClick=${() => { toasts.set((all) => all.filter((other) => other.id !== one.id)); one.action.run(); }}>${one.action.label}</button>`}</div>`)}
  </div>`;
}

const AGAIN_AFTER = 2000;
const isUnreached = (error) => error?.status === 0;

// What a request gives: { data, error, loading, reload }. It is asked again when `keys` change, and as long as the
// service does not answer: what was there stays meanwhile.
export function useAsked(load, keys) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const turn = useRef(0), again = useRef(null);
  const run = () => {
    const mine = ++turn.current;
    const ifMine = (act) => (given) => mine === turn.current && act(given);
    clearTimeout(again.current);
    setState((now) => ({ ...now, loading: true, error: isUnreached(now.error) ? now.error : null }));
    return Promise.resolve().then(load).then(
      ifMine((data) => setState({ data, error: null, loading: false })),
      ifMine((error) => {
        setState((now) => ({ data: isUnreached(error) ? now.data : null, error, loading: false }));
        if (isUnreached(error)) again.current = setTimeout(run, AGAIN_AFTER);
      }),
    );
  };
  useEffect(() => {
    run();
    return () => {
      turn.current += 1;
      clearTimeout(again.current);
    };
  }, keys);
  return { ...state, reload: run };
}

// What the window is called while something is shown, so that tabs and histories tell runs apart.
export function useTitle(name) {
  useEffect(() => { if (name) document.title = `${name} · sameas`; }, [name, location.hash.split("?")[0]]);
}

// A row that is longer than a telephone is wide shows the page that one is on.
export function showCurrent(row) {
  const here = row?.querySelector("[aria-current]");
  if (here) row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.clientWidth) / 2;
}

// Whether files are being dragged, and not words.
export const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;

// The set without the item, or with it where it was not there.
export function toggled(set, item) {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}

export const number = (value) => new Intl.NumberFormat("en").format(value);
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
// An instant for people; with `timeStyle` "" the day alone.
export function when(text, timeStyle = "short") {
  if (!text) return "";
  const date = new Date(text);
  return html`<time datetime=${text} title=${date.toISOString()}>${date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: timeStyle || undefined })}</time>`;
}
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
// The beginning of what is too long; a letter outside of the first plane, such as an emoji, stays whole.
export const shorten = (text, most) => (text.length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
// The last part of an IRI, for people.
export const localName = (iri) => /[^/#:]+$/.exec(iri)?.[0] ?? iri;
