// The frame around every page: name, navigation, theme, who is signed in, and the page that the address names.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Toasts, showCurrent } from "./components.js";
import { allPages, go, match, navigation, route } from "./router.js";
import { session, useStore } from "./store.js";
import { SignIn, Unreached, signOut } from "./signin.js";

function find(path) {
  for (const page of allPages()) {
    const params = match(page.path, path);
    if (params) return { page, params };
  }
  return null;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("sameas.theme", theme);
  } catch {
    // Without a storage it holds until the page is closed.
  }
  dispatchEvent(new Event("themechange"));
}

const isDark = () => document.documentElement.dataset.theme === "dark";

function ThemeButton() {
  const [dark, setDark] = useState(isDark());
  const turn = () => {
    setTheme(dark ? "light" : "dark");
    setDark(!dark);
  };
  return html`<button type="button" class="quiet icon" onClick=${turn} aria-label=${dark ? "Light colours" : "Dark colours"} title=${dark ? "Light colours" : "Dark colours"}>
    <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">${dark
      ? html`<circle cx="10" cy="10" r="4" fill="currentColor" /><path stroke="currentColor" stroke-width="1.6" stroke-linecap="round" d="M10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M16 4l-1.4 1.4M5.4 14.6 4 16" />`
      : html`<path fill="currentColor" d="M17 12.2A7.5 7.5 0 0 1 7.8 3a7.5 7.5 0 1 0 9.2 9.2z" />`}</svg>
  </button>`;
}

function Person({ now }) {
  if (now.auth === "single-tenant") return null;
  return html`<div class="person"><span title=${`Tenant ${now.tenant || ""}`}>${now.actor}</span>
    <button type="button" class="quiet" onClick=${signOut}>Sign out</button></div>`;
}

export function Shell() {
  const { path, query } = useStore(route);
  const now = useStore(session);
  const main = useRef(null);
  const first = useRef(true);
  const found = find(path);
  const page = found?.page;
  // Before the page says what it shows.
  useLayoutEffect(() => { document.title = page ? `${page.title} · sameas` : "sameas"; }, [path]);
  useEffect(() => {
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path]);
  useEffect(() => showCurrent(document.querySelector(".top nav")), [path, now.ready]);
  const isOpen = now.ready && now.signedIn;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/"><svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><rect width="32" height="32" rx="8" class="mark" /><circle cx="11" cy="16" r="5.5" /><circle cx="21" cy="16" r="5.5" /></svg><span>sameas</span></a>
      ${isOpen && html`<nav aria-label="Pages">${navigation().map((one) => html`<a key=${one.path} href=${`#${one.path}`}
        aria-current=${page && page.section === one.nav ? "page" : undefined}>${one.nav}</a>`)}</nav>`}
      <div class="top-end"><a class="quiet-link" href="docs">API</a><${ThemeButton} />${isOpen && html`<${Person} now=${now} />`}</div>
    </header>
    <main id="main" ref=${main} tabindex="-1" class=${page?.wide ? "wide" : ""}>
      ${!now.ready ? null : now.problem ? html`<${Unreached} problem=${now.problem} />` : !now.signedIn ? html`<${SignIn} />`
        : page ? html`<${page.view} key=${page.path} params=${found.params} query=${query} />`
        : html`<div class="empty"><h1>There is no such page</h1><p>The address may be of another version.</p><button type="button" onClick=${() => go("/")}>Back to Studio</button></div>`}
    </main>
    <${Toasts} />`;
}
