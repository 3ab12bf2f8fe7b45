import * as v from "valibot";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import type { SettingInForce } from "../settings-in-force.ts";

const setting = v.object({
  setting: v.string(),
  value: v.nullable(v.string()),
  source: v.string(),
  by: v.nullable(v.string()),
  file: v.nullable(v.string()),
  note: v.nullable(v.string()),
});

const example = {
  setting: "POSTRIDER_PORT",
  value: "8080",
  source: "default",
  by: null,
  file: null,
  note: null,
};

/** What `postrider config` would print here, for the server that is running. */
export const configRoutes = (settings: readonly SettingInForce[]): ErasedEndpoint[] => [
  endpoint(
    {
      method: "GET",
      path: "/operator/config",
      tag: "Operator",
      summary: "List the settings in force",
      description: "Of the server that answers, as it was started. Secrets are masked.",
      access: "operator",
      responses: {
        200: {
          description: "Every setting, and where it comes from.",
          schema: v.object({ settings: v.array(setting) }),
          example: { settings: [example] },
        },
      },
    },
    () => ok({ settings }),
  ),
];
