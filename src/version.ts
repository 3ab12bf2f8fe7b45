import { version as packageVersion } from "../package.json" with { type: "json" };

export const version: string = packageVersion;
