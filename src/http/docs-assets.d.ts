/** Files that `bun build --compile` embeds through `with { type: "file" }`; the import is the path to read them from. */
declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  const path: string;
  export default path;
}

declare module "swagger-ui-dist/swagger-ui.css" {
  const path: string;
  export default path;
}

declare module "*/docs-init.js" {
  const path: string;
  export default path;
}

declare module "*/docs-page.css" {
  const path: string;
  export default path;
}
