// Runs before anything is painted, so that a page that was chosen dark does not flash. The system decides until somebody
// chooses; `themechange` tells those who paint by themselves.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("sameas.theme");
    } catch {
      // A file opened from disk may have no storage.
      return null;
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = chosen() || (system.matches ? "dark" : "light");
    dispatchEvent(new Event("themechange"));
  };
  system.addEventListener("change", apply);
  apply();
})();
