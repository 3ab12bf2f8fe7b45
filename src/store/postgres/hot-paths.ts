import type { KnownGroups } from "./failure-counts.ts";
import type { Holdings } from "./holdings.ts";
import type { KeptTenants } from "./kept-tenants.ts";
import type { Lanes } from "./lanes.ts";
import type { Pool } from "./pool.ts";
import type { UnderWay } from "./under-way.ts";

/** What the verbs on every event's path are built from, besides the connection. */
export interface HotPaths {
  /** Connections for what lanes do not write (`planner.ts`). */
  readonly pool: Pool;
  readonly lanes: Lanes;
  readonly kept: KeptTenants;
  readonly groups: KnownGroups;
  readonly underWay: UnderWay;
  readonly holdings: Holdings;
}
