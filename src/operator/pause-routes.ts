import * as v from "valibot";
import type { NoteAct } from "../audit/note.ts";
import { type Pauses, pausable } from "../domain/pauses.ts";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
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
        },
      },
      async (request) => {
        const resumed = pauses.resume(request.body.what);
        for (const ended of resumed) {
          log.write("info", "server.resumed", { what: ended });
          await noteAct({ ...operatorOrigin(request), action: `${ended}.resumed` });
        }
        return ok({ resumed, paused: pauses.paused() });
      },
    ),
  ];
}
