import { Elysia } from "elysia";
import type { ErasedEndpoint } from "./endpoint.ts";

export const openApiPlugin = () => new Elysia();
export const describeEndpoint = (endpoint: ErasedEndpoint) => ({ summary: endpoint.summary, tags: [endpoint.tag] });
