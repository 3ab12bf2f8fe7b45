// Runs in the browser, on the page GET /docs. A file of its own, because the page allows no inline script.
window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  // Its default sends the document's address to an outside host.
  validatorUrl: null,
});
