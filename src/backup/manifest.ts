import * as v from "valibot";

/** What a backup says of itself: the first file in it. */
const model = v.object({
  format: v.literal(1),
  /** Of the program that made it. */
  version: v.string(),
  commit: v.string(),
  /** Migrations that the database has been through. */
  schema: v.number(),
  createdAt: v.string(),
  databaseBytes: v.number(),
  /** False: it is kept elsewhere, and a restore needs it. */
  hasMasterKey: v.boolean(),
  books: v.object({
    tables: v.record(v.string(), v.number()),
    events: v.number(),
    pending: v.number(),
    accounts: v.number(),
  }),
});

export type Manifest = v.InferOutput<typeof model>;

export const manifestFile = "manifest.json";
/** The last one, as `sha256sum` writes and reads it. */
export const sumsFile = "SHA256SUMS";

/** @throws Error when it is none of ours */
export function parseManifest(text: string): Manifest {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("its manifest is damaged");
  }
  const parsed = v.safeParse(model, found);
  if (parsed.success) return parsed.output;
  const format = typeof found === "object" && found !== null && "format" in found ? found.format : undefined;
  if (typeof format === "number" && format > 1) throw new Error("it was made by a newer version of Postrider");
  throw new Error("its manifest is damaged");
}
