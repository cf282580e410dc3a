// Asks the service. Every refusal is a Problem with the service's own words; nothing but this server is ever asked.
import { session } from "./store.js";

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the service answered ${status}`);
    this.status = status;
    this.code = (body.type || "").replace("urn:sameas:problem:", "");
    this.body = body;
  }
}

// Relative to the page, so that the service may stand under a path of somebody else's server.
export const address = (path) => path.replace(/^\//, "");

export async function ask(path, { method = "GET", body, headers = {}, accept = "application/json", raw = false, signal } = {}) {
  const isJson = body !== undefined && !(body instanceof Blob) && !(body instanceof ArrayBuffer) && typeof body !== "string";
  let reply;
  try {
    reply = await fetch(address(path), {
      method,
      signal,
      credentials: "same-origin",
      headers: {
        Accept: accept,
        // A page of another origin cannot send this without being asked first: it marks a request as ours.
        "X-Sameas-Page": "1",
        ...(isJson ? { "Content-Type": "application/json" } : {}),
        ...headers,
      },
      body: isJson ? JSON.stringify(body) : body,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The service does not answer. Is it running?" });
  }
  if (!reply.ok) {
    const problem = new Problem(reply.status, await reply.json().catch(() => ({})));
    if (reply.status === 401) session.set((now) => ({ ...now, signedIn: false }));
    throw problem;
  }
  if (raw) return reply;
  if (reply.status === 204) return null;
  return reply.json();
}

export const get = (path, options) => ask(path, options);
export const post = (path, body, options) => ask(path, { ...options, method: "POST", body });
export const put = (path, body, options) => ask(path, { ...options, method: "PUT", body });
export const del = (path, options) => ask(path, { ...options, method: "DELETE" });

// The query of an address, without what is empty.
export function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

// Saves an answer of the service as a file, under the name that people expect.
export function save(data, name, type = "application/octet-stream") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export async function download(path, name) {
  const reply = await ask(path, { raw: true, accept: "*/*" });
  save(await reply.blob(), name);
}

// Server-sent events of a run. The browser comes back by itself with Last-Event-ID; where it gave up (the server was
// being restarted and refused), this comes back after the last number seen. `onState` hears "open", "waiting", "ended".
export function listen(path, { onEvent, onState = () => {}, after = 0 }) {
  let last = after, source = null, timer = null, closed = false, tries = 0;
  const FINAL = ["extraction_completed", "extraction_failed", "extraction_cancelled"];
  const names = [
    ...FINAL, "extraction_started", "stage_started", "stage_progress", "stage_completed", "chunk_started",
    "chunk_completed", "entity_found", "relation_found", "rate_limited", "budget_warning", "timeout_warning",
    "error_recoverable", "cache_hit", "backpressure_warning",
  ];
  function close() {
    closed = true;
    clearTimeout(timer);
    source?.close();
  }
  function open() {
    source = new EventSource(address(`${path}${query({ after: last || "" })}`));
    source.onopen = () => {
      tries = 0;
      onState("open");
    };
    const hear = (message) => {
      const event = JSON.parse(message.data);
      if (message.lastEventId) last = Math.max(last, Number(message.lastEventId));
      onEvent(event);
      if (FINAL.includes(event.type)) {
        close();
        onState("ended");
      }
    };
    for (const name of names) source.addEventListener(name, hear);
    source.onmessage = hear;
    source.onerror = () => {
      if (closed) return;
      onState("waiting");
      if (source.readyState === EventSource.CLOSED) {
        // 204 means that there is nothing more, and looks the same: whoever listens asks how the run stands.
        tries += 1;
        timer = setTimeout(open, Math.min(5000, 300 * 2 ** tries));
      }
    };
  }
  open();
  return close;
}
