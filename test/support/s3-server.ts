import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
// @ts-expect-error It has no types.
import S3rver from "@20minutes/s3rver";

/** A third-party S3-compatible server, which checks signatures, with the bucket `backups`. */
export async function startS3Server() {
  const directory = mkdtempSync(join(tmpdir(), "postrider-s3-"));
  const server = new S3rver({
    directory,
    address: "127.0.0.1",
    port: 0,
    silent: true,
    configureBuckets: [{ name: "backups", configs: [] }],
  });
  const { port } = (await server.run()) as { port: number };
  const endpoint = `http://127.0.0.1:${port}`;
  // The key that it knows.
  const key = "S3RVER";
  return {
    env: { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: key, AWS_ENDPOINT_URL_S3: endpoint },
    client: new Bun.S3Client({
      accessKeyId: key,
      secretAccessKey: key,
      bucket: "backups",
      region: "us-east-1",
      endpoint,
    }),
    async stop() {
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Takes requests and answers none of them. */
export function startStuckS3Server() {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    fetch() {
      resolve();
      return new Promise<never>(() => {});
    },
  });
  return {
    env: {
      AWS_ACCESS_KEY_ID: "anyone",
      AWS_SECRET_ACCESS_KEY: "anything",
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${server.port}`,
    },
    /** Resolves with the first request. */
    asked,
    stop: () => server.stop(true),
  };
}
