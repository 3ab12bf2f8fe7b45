import * as v from "valibot";
import type { NoteAct } from "../audit/note.ts";
import { accepted, type ErasedEndpoint, endpoint } from "../http/endpoint.ts";
import { failure } from "../http/error-models.ts";
import { operatorOrigin } from "./origin.ts";

/**
 * Starts a successor (`handover.ts`). Resolves once the successor is ready and this server begins to leave.
 * @throws DomainError when it cannot start, and this server carries on
 */
export type Restart = () => Promise<{ readonly pid: number; readonly version: string }>;

export interface RestartRouteDeps {
  restart: Restart;
  noteAct: NoteAct;
}

/** What `postrider restart` calls. */
export function restartRoutes({ restart, noteAct }: RestartRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "POST",
        path: "/operator/restart",
        tag: "Operator",
        summary: "Start the program anew without a gap",
        description:
          "Starts the program that lies where this one was started from, with the same arguments, and hands port and data over to it. No request is refused meanwhile. Answers once the successor is ready; it takes over when attempts in flight have ended, within 8 s, or at once where servers share the database. If it is not, nothing changes.",
        access: "operator",
        responses: {
          202: {
            description: "The successor is ready, and takes over.",
            schema: v.object({ pid: v.number(), version: v.string() }),
            example: { pid: 4711, version: "1.2.0" },
          },
          503: failure(
            "The new process cannot be started; this one keeps running.",
            "not_restarted",
            "The new process did not start, so this one keeps running: The database is of another version's schema, and is upgraded by a start. Try: stop the server, then start this version.",
          ),
        },
      },
      async (request) => {
        const successor = await restart();
        const { version } = successor;
        await noteAct({ ...operatorOrigin(request), action: "server.restarted", detail: { version } });
        return accepted(successor);
      },
    ),
  ];
}
