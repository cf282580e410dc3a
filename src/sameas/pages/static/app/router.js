// Which page is shown: the part of the address after `#`, such as `#/runs/sha256-…?class=Person`. A link is an address,
// so that a view can be mailed; hashes, so that the same pages work in a file without a server.
import { createStore } from "./store.js";

function read() {
  const [path, search = ""] = (location.hash.slice(1) || "/").split("?");
  return { path: path || "/", query: Object.fromEntries(new URLSearchParams(search)) };
}

export const route = createStore(read());

// Browsers refuse an address that changes more than a few times a second: while somebody holds a key or drags a slider
// the pages go on at once and the address follows.
const EVERY = 200;
let later = null, wroteAt = -EVERY, wroteOver = "";

function write() {
  clearTimeout(later);
  later = null;
  // Somebody went elsewhere in the meantime.
  if (location.hash !== wroteOver) return;
  wroteAt = performance.now();
  const { path, query } = route.get();
  history.replaceState(null, "", href(path, query));
}

const writeNow = () => { if (later !== null) write(); };
// Before a link is followed or the page is left, so that the way back leads to what was seen.
addEventListener("click", writeNow, true);
addEventListener("pagehide", writeNow);
addEventListener("hashchange", () => {
  clearTimeout(later);
  later = null;
  route.set(read());
});

// The address of what is shown now.
export function currentAddress() {
  writeNow();
  return location.href;
}

export function href(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export function go(path, query) {
  writeNow();
  location.hash = href(path, query);
}

// Changes the query without a new entry in the history, for filters and selections.
export function refine(changes) {
  const now = route.get();
  route.set({ ...now, query: { ...now.query, ...changes } });
  wroteOver = location.hash;
  const wait = wroteAt + EVERY - performance.now();
  if (wait <= 0) write();
  else later ??= setTimeout(write, wait);
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

// The pages, in the order of the navigation. A file of pages calls `addPage` for each of its own and is imported in
// `main.js`; nothing else needs to know it.
const pages = [];

// `path` as for `match`; `view` is a component that gets { params, query }. With `nav` it stands in the navigation, at
// the place that `order` gives; `section` marks the entry that is current on the pages below it.
export function addPage({ path, title, view, nav = null, order = 100, section = nav }) {
  pages.push({ path, title, view, nav, order, section });
}

export const allPages = () => pages;
export const navigation = () => pages.filter((page) => page.nav).sort((one, other) => one.order - other.order);
