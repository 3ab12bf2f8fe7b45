import { type ApiOptions, createApi } from "../../src/api.ts";
import { createAnswers } from "../../src/http/answers.ts";
import { createBodyRoom } from "../../src/http/body-room.ts";
import type { ErasedEndpoint } from "../../src/http/endpoint.ts";
import { createResponder } from "../../src/http/respond.ts";
import { inboxPath } from "../../src/inbox/addresses.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";

/** Some endpoints behind the real router and runner, on a free port; anyone may call all of them. */
export function serveEndpoints(endpoints: readonly ErasedEndpoint[], options: Partial<ApiOptions> = {}) {
  const lines: string[] = [];
  const log = createLog({ level: "debug", format: "json", now: () => 0, out: (line) => void lines.push(line) });
  const respond = createResponder({
    authenticate: async () => ({}),
    clientAddress: (socketAddress) => socketAddress,
    bodyRoom: createBodyRoom(),
    answers: createAnswers({ clock: systemClock, log, largestEntryBytes: 0 }),
    log,
  });
  const api = createApi({
    endpoints,
    respond,
    sealedPaths: [inboxPath],
    unknownPage: null,
    localMode: true,
    refuseCrossSite: () => null,
    log,
    publicUrl: () => "http://localhost:8080",
    isDraining: () => false,
    isMoving: () => false,
    isSelling: true,
    noteRequest() {},
    addressOf: null,
    ...options,
  });
  api.listen({ hostname: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${api.server?.port}`,
    log: lines,
    stop: async () => void (await api.server?.stop(true)),
  };
}
