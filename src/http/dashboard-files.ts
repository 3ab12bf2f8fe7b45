import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Where the bundled dashboard is. The build embeds `dist/web` as `web`, next to every module of the executable; in a source
 * checkout it is where `bun web/build.ts` leaves it.
 */
const embedded = join(import.meta.dir, "web");
const folder = existsSync(join(embedded, "index.html")) ? embedded : join(import.meta.dir, "../../dist/web");

export interface DashboardFiles {
  /** The single page that serves all views. */
  readonly page: string;
  /** The operator's page, with its own script and style. */
  readonly operatorPage: string;
  /** Scripts and styles, each compressed with gzip, under names that hold a hash of their content. */
  readonly assetsFolder: string;
}

/**
 * Null when the dashboard was not built, as in a fresh checkout, or when a page is missing, as after a build by an earlier
 * version.
 */
export function findDashboard(): DashboardFiles | null {
  const [page, operatorPage] = ["index.html", "operator.html"].map((name) => {
    const path = join(folder, name);
    return existsSync(path) ? readFileSync(path, "utf8") : null;
  });
  return page && operatorPage ? { page, operatorPage, assetsFolder: join(folder, "assets") } : null;
}
