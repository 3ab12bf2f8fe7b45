/** Where the OpenAPI document is. */
export const documentPath = "/openapi.json";
