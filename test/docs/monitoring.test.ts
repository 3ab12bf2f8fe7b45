import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startTestApp } from "../support/test-app.ts";
import { root } from "./documents.ts";

/** What operators take over as it is: it must speak of metrics that there are. */

// Some series are there only where backups are kept.
const server = await startTestApp({ env: { POSTRIDER_BACKUP_URL: "/nowhere" } });
afterAll(() => server.stop());
const { text: metrics } = await server.request("GET", "/metrics");
const known = new Set(
  [...metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = "", kind]) => seriesOf(name, kind)),
);
/** Prometheus makes it itself. */
known.add("up");

function seriesOf(name: string, kind: string | undefined): string[] {
  return kind === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

const folder = join(root, "docs/monitoring");
interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}
const rules = (
  Bun.YAML.parse(readFileSync(join(folder, "alerts.yml"), "utf8")) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
interface Panel {
  title: string;
  type: string;
  targets?: { expr: string }[];
}
const { panels } = JSON.parse(readFileSync(join(folder, "grafana.json"), "utf8")) as { panels: Panel[] };

/** Names of series in an expression: ours, and the run-time's. */
const seriesIn = (expr: string) => [...expr.matchAll(/\b(?:postrider|process)_\w+|\bup\b/g)].map(([name]) => name);

describe("the alert rules", () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))(
    "%s asks for series that there are, and says what to do",
    (_, rule) => {
      const asked = seriesIn(rule.expr);
      expect(asked).not.toEqual([]);
      for (const name of asked) expect([...known]).toContain(name);
      expect(rule.annotations.description).toContain("Try:");
      expect(["page", "ticket"]).toContain(rule.labels.severity);
    },
  );

  const promtool = Bun.which("promtool");
  test.skipIf(promtool === null)("promtool accepts them", () => {
    const { exitCode, stderr } = Bun.spawnSync([
      promtool ?? "",
      "check",
      "rules",
      "--lint=all",
      join(folder, "alerts.yml"),
    ]);
    expect({ exitCode, said: stderr.toString() }).toMatchObject({ exitCode: 0 });
  });
});

describe("the Grafana dashboard", () => {
  test.each(panels.filter(({ type }) => type !== "row").map((panel) => [panel.title, panel] as const))(
    "%s draws series that there are",
    (_, { targets = [] }) => {
      const asked = targets.flatMap(({ expr }) => seriesIn(expr));
      expect(asked).not.toEqual([]);
      for (const name of asked) expect([...known]).toContain(name);
    },
  );
});
