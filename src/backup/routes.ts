import * as v from "valibot";
import type { NoteAct } from "../audit/note.ts";
import { accepted, type ErasedEndpoint, endpoint, noContent, ok } from "../http/endpoint.ts";
import { jsonObject } from "../http/validation.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import { operatorOrigin } from "../operator/origin.ts";
import type { Backups } from "./backups.ts";
import type { BackupOutcome } from "./history.ts";

const outcome = v.object({
  kind: v.picklist(["backup", "verify"]),
  name: v.nullable(v.string()),
  at: v.string(),
  took_ms: v.number(),
  bytes: v.nullable(v.number()),
  error: v.nullable(v.string()),
});

const stored = v.object({
  name: v.string(),
  bytes: v.number(),
  created_at: v.string(),
  verified: v.nullable(v.boolean()),
});

const answer = v.object({
  place: v.nullable(v.string()),
  schedule: v.nullable(v.string()),
  keep: v.nullable(v.number()),
  next_at: v.nullable(v.string()),
  under_way: v.nullable(v.picklist(["backup", "verify"])),
  latest: v.nullable(outcome),
  latest_backup: v.nullable(outcome),
  backups: v.array(stored),
});

const latestExample = {
  kind: "backup" as const,
  name: "postrider-20260301T030000.000Z.tar.zst",
  at: "2026-03-01T03:00:00.000Z",
  took_ms: 8_412,
  bytes: 41_200_311,
  error: null,
};

const example = {
  place: "s3://backups/postrider",
  schedule: "0 3 * * *",
  keep: 7,
  next_at: "2026-03-02T03:00:00.000Z",
  under_way: null,
  latest: latestExample,
  latest_backup: latestExample,
  backups: [
    {
      name: "postrider-20260301T030000.000Z.tar.zst",
      bytes: 41_200_311,
      created_at: "2026-03-01T03:00:00.000Z",
      verified: true,
    },
  ],
};

const toOutcome = ({ kind, name, at, tookMs, bytes, error }: BackupOutcome) => ({
  kind,
  name,
  at: formatIso(at),
  took_ms: tookMs,
  bytes,
  error,
});

const wholeRule = "must be a whole number from 0";
const madeBody = jsonObject({
  took_ms: v.pipe(v.number(wholeRule), v.integer(wholeRule), v.minValue(0, wholeRule)),
  faults: v.nullable(v.array(v.string("must be text"), "must be an array, or null where it was not verified")),
});

const begun = v.object({ under_way: v.picklist(["backup", "verify"]) });
const tag = "Operator";

/** What the operator's page shows about backups and can do with them. */
export function backupRoutes({ backups, noteAct }: { backups: Backups; noteAct: NoteAct }): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/operator/backups",
        tag,
        summary: "List the backups",
        description:
          "Those in `POSTRIDER_BACKUP_URL`, newest first, and how the latest work on them ended: `latest` may be a verification, `latest_backup` is not. `verified` is null where nobody has looked.",
        access: "operator",
        responses: {
          200: { description: "The backups, and when the next one is made.", schema: answer, example },
        },
      },
      async () => {
        const list = await backups.list();
        const { latest, latestBackup, verified } = backups.history();
        return ok({
          place: backups.url,
          schedule: backups.cron,
          keep: backups.keep,
          next_at: formatIsoOrNull(backups.nextAt()),
          under_way: backups.underWay(),
          latest: latest && toOutcome(latest),
          latest_backup: latestBackup && toOutcome(latestBackup),
          backups: list.map(({ name, bytes, createdAt }) => ({
            name,
            bytes,
            created_at: formatIso(createdAt),
            verified: verified[name] ?? null,
          })),
        });
      },
    ),
    endpoint(
      {
        method: "POST",
        path: "/operator/backups",
        tag,
        summary: "Make a backup now",
        description: "It is verified, too. The answer comes as it begins; `GET /operator/backups` says how it ended.",
        access: "operator",
        responses: {
          202: { description: "It has begun.", schema: begun, example: { under_way: "backup" } },
        },
      },
      async (request) => {
        backups.begin();
        await noteAct({ ...operatorOrigin(request), action: "backup.started" });
        return accepted({ under_way: "backup" });
      },
    ),
    endpoint(
      {
        method: "PUT",
        path: "/operator/backups/:name",
        tag,
        summary: "Note a backup that was made by a command",
        description:
          "`postrider backup` says so when it has made one in `POSTRIDER_BACKUP_URL`: metrics and alerts count it. `faults` is what its verification found, null where it was not verified.",
        access: "operator",
        params: v.object({ name: v.string() }),
        body: madeBody,
        bodyExample: { took_ms: 8_412, faults: [] },
        responses: { 204: { description: "It is noted." } },
      },
      async ({ params, body }) => {
        await backups.noteMade(params.name, { tookMs: body.took_ms, faults: body.faults });
        return noContent();
      },
    ),
    endpoint(
      {
        method: "POST",
        path: "/operator/backups/:name/verify",
        tag,
        summary: "Verify a backup now",
        description:
          "It is restored to a temporary folder in the data directory. One that is encrypted is refused. The answer comes as it begins; `GET /operator/backups` says how it ended.",
        access: "operator",
        params: v.object({ name: v.string() }),
        responses: {
          202: { description: "It has begun.", schema: begun, example: { under_way: "verify" } },
        },
      },
      async (request) => {
        const { name } = request.params;
        backups.beginVerification(name);
        await noteAct({ ...operatorOrigin(request), action: "backup_verification.started", detail: { backup: name } });
        return accepted({ under_way: "verify" });
      },
    ),
  ];
}
