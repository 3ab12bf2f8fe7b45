import type { ErasedEndpoint } from "./endpoint.ts";
export const docsRoutes = (): ErasedEndpoint[] => [];
