import { version as packageVersion } from "../package.json" with { type: "json" };

/** Put in by the build; the sources run without it. */
declare const POSTRIDER_BUILD_COMMIT: string | undefined;

export const version: string = packageVersion;

/** The commit that an executable was built from; "unknown" when it was not built in a clone, or runs from the sources. */
export const commit: string = typeof POSTRIDER_BUILD_COMMIT === "string" ? POSTRIDER_BUILD_COMMIT : "unknown";
