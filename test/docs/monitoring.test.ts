import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
  description?: string;
  fieldConfig?: { defaults: { unit?: string } };
  targets?: { expr: string }[];
}
interface Variable {
  name: string;
  allValue?: string;
}
interface Dashboard {
  panels: Panel[];
  templating: { list: Variable[] };
  annotations: { list: { target: { expr: string } }[] };
}
const { panels, templating, annotations } = JSON.parse(readFileSync(join(folder, "grafana.json"), "utf8")) as Dashboard;
const drawn = panels.filter(({ type }) => type !== "row");
const expressions = [
  ...drawn.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...annotations.list.map(({ target }) => target.expr),
];

/** Names of series in an expression: ours, and the runtime's. */
const seriesIn = (expr: string) => [...expr.matchAll(/\b(?:postrider|process)_\w+|\bup\b/g)].map(([name]) => name);

const promtool = Bun.which("promtool");
function runPromtool(...words: string[]): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync([promtool ?? "", ...words]);
  expect({ exitCode, said: `${stdout}${stderr}` }).toMatchObject({ exitCode: 0 });
}

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

  test.skipIf(promtool === null)("promtool accepts them", () => {
    runPromtool("check", "rules", "--lint=all", join(folder, "alerts.yml"));
  });

  test.skipIf(promtool === null)("promtool finds that they fire when they are to", () => {
    runPromtool("test", "rules", join(import.meta.dir, "alerts.promtool.yml"));
  });
});

describe("the Grafana dashboard", () => {
  test.each(drawn.map((panel) => [panel.title, panel] as const))(
    "%s draws series that there are, says what it means, and has a unit",
    (_, { targets = [], description, fieldConfig }) => {
      expect(description).toEndWith(".");
      expect(fieldConfig?.defaults.unit).toBeString();
      const asked = targets.flatMap(({ expr }) => seriesIn(expr));
      expect(asked).not.toEqual([]);
      for (const name of asked) expect([...known]).toContain(name);
    },
  );

  test.each(expressions)("%s is of the servers that are chosen alone", (expr) => {
    expect(expr.match(/\{instance=~"\$instance"[,}]/g)?.length).toBe(seriesIn(expr).length);
  });

  // Others that the same Prometheus asks have a process, too.
  test("all servers are all of ours", () => {
    expect(templating.list.find(({ name }) => name === "instance")).not.toHaveProperty("allValue");
  });

  test.skipIf(promtool === null)("promtool can read each expression", () => {
    const rules = expressions.map((expr, i) => ({
      record: `drawn:${i}`,
      expr: expr.replaceAll("$instance", "relay:443").replaceAll("$__rate_interval", "1m"),
    }));
    const file = join(mkdtempSync(join(tmpdir(), "postrider-grafana-")), "rules.json");
    writeFileSync(file, JSON.stringify({ groups: [{ name: "drawn", rules }] }));
    runPromtool("check", "rules", "--lint=none", file);
    rmSync(dirname(file), { recursive: true });
  });
});
