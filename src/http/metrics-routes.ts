import { type ErasedEndpoint, endpoint } from "./endpoint.ts";
import type { Metrics } from "./metrics.ts";

/**
 * `GET /metrics`, for Prometheus. In public mode it takes the metrics token or the operator token (rules, sections 13 and
 * 16).
 */
export function metricsRoutes({ metrics, isPublic }: { metrics: Metrics; isPublic: boolean }): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/metrics",
        tag: "Operator",
        summary: "Metrics in the Prometheus text format",
        access: isPublic ? "metrics" : "none",
        responses: { 200: { description: "The metrics.", contentType: "text/plain" } },
      },
      async () => ({ status: 200, text: await metrics.text(), headers: { "Content-Type": metrics.contentType } }),
    ),
  ];
}
