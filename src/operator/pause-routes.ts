import * as v from "valibot";
import type { NoteAct } from "../audit/note.ts";
import { type Pausable, type Pauses, pausable } from "../domain/pauses.ts";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { failure } from "../http/error-models.ts";
import { jsonObject } from "../http/validation.ts";
import type { Log } from "../lib/log.ts";
import { operatorOrigin } from "./origin.ts";

export interface PauseRouteDeps {
  pauses: Pauses;
  log: Log;
  noteAct: NoteAct;
}

const what = v.picklist(pausable, 'must be "deliveries" or "charges"');

/** What `postrider resume` calls (rules, section 16: safe starts). */
export function pauseRoutes({ pauses, log, noteAct }: PauseRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "POST",
        path: "/operator/resume",
        tag: "Operator",
        summary: "Resume what is paused",
        description: "Deliveries, charges or both. Whatever is not paused is unaffected.",
        access: "operator",
        body: jsonObject({ what: v.optional(v.array(what), [...pausable]) }),
        bodyOptional: true,
        bodyExample: { what: ["deliveries"] },
        responses: {
          200: {
            description: "What has resumed, and what is still paused.",
            schema: v.object({ resumed: v.array(what), paused: v.array(what) }),
            example: { resumed: ["deliveries"], paused: ["charges"] },
          },
          503: failure(
            "It cannot be noted that they resume.",
            "storage_unavailable",
            "The data directory cannot be written (ENOSPC: no space left on device, write), so deliveries stay paused. Try: make room there, and resume again.",
          ),
        },
      },
      async (request) => {
        const resumed: Pausable[] = [];
        for (const what of pausable) {
          if (!request.body.what.includes(what) || !pauses.resume(what)) continue;
          resumed.push(what);
          log.write("info", "server.resumed", { what });
          await noteAct({ ...operatorOrigin(request), action: `${what}.resumed` });
        }
        return ok({ resumed, paused: pauses.paused() });
      },
    ),
  ];
}
