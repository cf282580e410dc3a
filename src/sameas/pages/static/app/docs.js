// The API's own page: swagger-ui on the document that the service makes of its routes.
window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  // Links inside of buttons cannot be reached by everybody.
  deepLinking: false,
  // Without this it would ask a validator elsewhere.
  validatorUrl: null,
  // Its groups are right below the title.
  onComplete: () => document.querySelectorAll("#api h3.opblock-tag").forEach((one) => one.setAttribute("aria-level", "2")),
});
