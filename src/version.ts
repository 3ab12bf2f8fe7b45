import { version as packageVersion } from "../package.json" with { type: "json" };

/** Injected by the build; the sources run without them. */
declare const POSTRIDER_BUILD_COMMIT: string | undefined;
declare const POSTRIDER_BUILD_COMMITTED_AT: string | undefined;

export const version: string = packageVersion;

/** The commit that an executable was built from; "unknown" if it was not built in a clone, or runs from the sources. */
export const commit: string = typeof POSTRIDER_BUILD_COMMIT === "string" ? POSTRIDER_BUILD_COMMIT : "unknown";

/** When that was committed, so that two builds of one commit are alike; "unknown" as above. */
export const committedAt: string =
  typeof POSTRIDER_BUILD_COMMITTED_AT === "string" ? POSTRIDER_BUILD_COMMITTED_AT : "unknown";
