// The API's own page: swagger-ui on the document that the service makes of its routes.
const paint = () => document.documentElement.classList.toggle("dark-mode", document.documentElement.dataset.theme === "dark");
addEventListener("themechange", paint);
paint();
window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  // Links inside of buttons cannot be reached by everybody.
  deepLinking: false,
  // Without this it would ask a validator elsewhere.
  validatorUrl: null,
  // For those who go by landmarks and headings: its groups are right below the title, and the title is in a place.
  onComplete() {
    for (const one of document.querySelectorAll("#api h3.opblock-tag, #api section.models h4")) one.setAttribute("aria-level", "2");
    for (const [name, label] of [["information", "About this API"], ["scheme", "Servers and credentials"]]) {
      const part = document.querySelector(`#api .${name}-container`);
      part?.setAttribute("role", "region");
      part?.setAttribute("aria-label", label);
    }
  },
});
