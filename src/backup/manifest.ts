import * as v from "valibot";

/** How a backup describes itself: the first file in it. */
const model = v.object({
  format: v.literal(1),
  /** Of the program that made it. */
  version: v.string(),
  commit: v.string(),
  /** Number of migrations applied to the database. */
  schema: v.number(),
  createdAt: v.string(),
  databaseBytes: v.number(),
  /** False: the key is kept elsewhere, and a restore needs it. */
  hasMasterKey: v.boolean(),
  books: v.object({
    tables: v.record(v.string(), v.number()),
    events: v.number(),
    pending: v.number(),
    accounts: v.number(),
  }),
});

export type Manifest = v.InferOutput<typeof model>;

/** The first file in a backup, so that a reader knows the rest before it comes. */
export const manifestFile = "manifest.json";
/** The last file in a backup, in the format that `sha256sum` writes and reads. */
export const sumsFile = "SHA256SUMS";

/** @throws Error when it is not one of our manifests */
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
