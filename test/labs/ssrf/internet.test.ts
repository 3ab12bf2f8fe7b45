import { expect, test } from "bun:test";
import { Glob } from "bun";

/**
 * Runs `inside/` in a network of its own, in which every address of the internet leads to this machine: so a canary can
 * listen on all of them, private, special and public, and the real server can be tried in public mode without anything
 * in it being replaced. It takes Linux, user namespaces and `ip`; elsewhere `test/delivery/canary.test.ts` shows the same
 * for loopback.
 */
const everyAddressIsHere = [
  "ip link set lo up",
  "ip route add local 0.0.0.0/0 dev lo",
  "ip -6 route add local ::/0 dev lo",
  'exec "$@"',
].join(" && ");
const enter = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", everyAddressIsHere, "sh"];

const isPossible = (() => {
  try {
    return Bun.spawnSync([...enter, "true"], { stdout: "ignore", stderr: "ignore" }).success;
  } catch {
    return false;
  }
})();

const files = [...new Glob("*.ts").scanSync(`${import.meta.dir}/inside`)].filter((file) => file !== "world.ts").sort();

test.skipIf(!isPossible).each(files)("where every address of the internet is a canary: %s", async (file) => {
  const child = Bun.spawn(
    [...enter, process.execPath, "test", "--timeout=120000", `${import.meta.dir}/inside/${file}`],
    {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const said = `${stdout}${stderr}`;
  // What went wrong inside is shown whole.
  expect((await child.exited) === 0 ? "" : said).toBe("");
  expect(Number(/^ *(\d+) pass$/m.exec(said)?.[1])).toBeGreaterThan(0);
  expect(said).toMatch(/^ *0 fail$/m);
  expect(said).not.toMatch(/^ *[1-9]\d* skip$/m);
});
