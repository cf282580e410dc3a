// Which page is shown: the part of the address after `#`, such as `#/runs/sha256-…?class=Person`. A link is an address,
// so that a view can be mailed; hashes, so that the same pages work in a file without a server.
import { createStore } from "./store.js";

function read() {
  const [path, search = ""] = (location.hash.slice(1) || "/").split("?");
  return { path: path || "/", query: Object.fromEntries(new URLSearchParams(search)) };
}

export const route = createStore(read());
addEventListener("hashchange", () => route.set(read()));

export function href(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export function go(path, query) {
  location.hash = href(path, query);
}

// Changes the query without a new entry in the history, for filters and selections.
export function refine(changes) {
  const now = read();
  history.replaceState(null, "", href(now.path, { ...now.query, ...changes }));
  route.set(read());
}

// `/runs/:key` fits `/runs/abc` and gives { key: "abc" }; null where it does not fit.
export function match(pattern, path) {
  const wanted = pattern.split("/"), given = path.split("/");
  if (wanted.length !== given.length) return null;
  const found = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith(":")) {
      try {
        found[part.slice(1)] = decodeURIComponent(given[index]);
      } catch {
        return null;
      }
    } else if (part !== given[index]) return null;
  }
  return found;
}
