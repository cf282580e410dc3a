// The API's own page: swagger-ui on the document that the service makes of its routes.
window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  // Without this it would ask a validator elsewhere.
  validatorUrl: null,
});
