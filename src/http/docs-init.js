// Runs in the browser, on the page GET /docs. A file of its own, because the page allows no inline script.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
// Its dark colours go by this class.
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
followScheme();
dark.addEventListener("change", followScheme);

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
