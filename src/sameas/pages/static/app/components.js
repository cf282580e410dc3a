// What pages are put together from: buttons aside, everything that more than one page shows.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { createStore, useStore } from "./store.js";

// A word in a pill. `kind`: good, bad, warn, info or plain.
export const Badge = ({ kind = "plain", children, title }) =>
  html`<span class=${`badge badge-${kind}`} title=${title}>${children}</span>`;

const STATUS = { complete: "good", running: "info", pending: "info", partial: "warn", failed: "bad", grounded: "good", unverified: "warn" };
export const Status = ({ status }) => html`<${Badge} kind=${STATUS[status] || "plain"}>${status}<//>`;

// A table with a caption for those who cannot see it. Columns: { key, label, render?, number? }.
export function Table({ caption, columns, rows, rowKey = (row, index) => index, onRow, empty = "Nothing here yet." }) {
  if (!rows.length) return html`<${Empty}>${empty}<//>`;
  return html`<div class="table-frame" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="hidden">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.number ? "number" : ""}>${column.label}</th>`)}</tr></thead>
      <tbody>
        ${rows.map((row, index) => html`<tr key=${rowKey(row, index)} onClick=${onRow ? () => onRow(row) : undefined} class=${onRow ? "choosable" : ""}>
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
export const Failure = ({ error }) => error && html`<${Notice} kind="bad" title="That did not work">${error.message}<//>`;

export const Loading = ({ what = "Loading" }) => html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${what}…</p>`;

// A modal; the browser itself keeps the focus inside and gives it back.
export function Dialog({ title, onClose, children, actions, wide = false }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const opened = box.current;
    if (!opened.open) opened.showModal();
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

export const Field = ({ label, hint, children }) => html`<label class="field"><span class="label">${label}</span>${children}${hint && html`<span class="hint">${hint}</span>`}</label>`;

// Something to read later: shortened, whole in its title, copied by a click.
export const Key = ({ value, length = 12 }) => {
  const short = value.replace(/^sha256-/, "").slice(0, length);
  return html`<button type="button" class="key" title=${`Copy ${value}`}
    onClick=${(event) => { event.stopPropagation(); navigator.clipboard?.writeText(value).then(() => toast("Copied.")); }}>${short}</button>`;
};

const toasts = createStore([]);
let told = 0;

// A word at the foot of the page. `action`: { label, run }.
export function toast(message, { kind = "info", action = null, seconds = 6 } = {}) {
  const id = ++told;
  toasts.set((now) => [...now.slice(-3), { id, message, kind, action }]);
  setTimeout(() => toasts.set((now) => now.filter((one) => one.id !== id)), seconds * 1000);
}
export const complain = (error) => toast(error.message, { kind: "bad", seconds: 12 });

export function Toasts() {
  const now = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${now.map((one) => html`<div key=${one.id} class=${`toast toast-${one.kind}`}><span>${one.message}</span>
      ${one.action && html`<button type="button" class="quiet" onClick=${() => { toasts.set((all) => all.filter((other) => other.id !== one.id)); one.action.run(); }}>${one.action.label}</button>`}</div>`)}
  </div>`;
}

// What a request gives: { data, error, loading, reload }. It is asked again when `keys` change.
export function useAsked(load, keys) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const turn = useRef(0);
  const run = () => {
    const mine = ++turn.current;
    setState((now) => ({ ...now, loading: true, error: null }));
    return Promise.resolve().then(load).then(
      (data) => mine === turn.current && setState({ data, error: null, loading: false }),
      (error) => mine === turn.current && setState({ data: null, error, loading: false }),
    );
  };
  useEffect(() => {
    run();
    return () => { turn.current += 1; };
  }, keys);
  return { ...state, reload: run };
}

export const number = (value) => new Intl.NumberFormat("en").format(value);
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
export function when(text) {
  if (!text) return "";
  const date = new Date(text);
  return html`<time datetime=${text} title=${date.toISOString()}>${date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}</time>`;
}
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
// The last part of an IRI, for people.
export const localName = (iri) => /[^/#:]+$/.exec(iri)?.[0] ?? iri;
